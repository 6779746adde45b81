//! The Mandelbrot set as a picture, `mandelbrot.pgm`, computed on the GPU or the CPU.
//!
//! `cargo run --release --example mandelbrot -- [width]`

#![allow(clippy::print_stdout, reason = "it says what it has written")]

use gridloom::prelude::*;
use gridloom::{KernelType, Out, device, kernel};

#[derive(Clone, Copy, KernelType)]
struct Complex {
    re: f64,
    im: f64,
}

#[device]
impl Complex {
    fn size_squared(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
}

#[device]
impl std::ops::Add for Complex {
    type Output = Complex;

    fn add(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

#[device]
impl std::ops::Mul for Complex {
    type Output = Complex;

    fn mul(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// Returns the steps that it takes to leave the circle of radius 2, at most 255.
#[device]
fn escape_time(c: Complex) -> u8 {
    let mut z = Complex { re: 0.0, im: 0.0 };
    for steps in 0..255 {
        if z.size_squared() > 4.0 {
            return steps;
        }
        z = z * z + c;
    }
    255
}

#[kernel]
fn mandelbrot(width: usize, height: usize, picture: Out<u8>) {
    if let Some(((x, y), pixel)) = picture.mine_2d(width) {
        let c =
            Complex { re: (x as f64 / width as f64) * 3.5 - 2.5, im: (y as f64 / height as f64) * 2.0 - 1.0 };
        *pixel = 255 - escape_time(c);
    }
}

fn main() -> Result<()> {
    let width = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1400usize);
    let height = width * 4 / 7;
    let device = Device::best()?;
    let stream = device.stream()?;
    let picture = device.alloc::<u8>(width * height)?;
    let blocks = ((width as u32).div_ceil(32), (height as u32).div_ceil(8));
    let mandelbrot = mandelbrot::load(&device)?;
    stream.launch(&mandelbrot, LaunchConfig::new(blocks, (32, 8)), (width, height, &picture))?;

    let mut file = format!("P5 {width} {height} 255\n").into_bytes();
    file.extend(picture.to_vec()?);
    std::fs::write("mandelbrot.pgm", file).map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
    println!("mandelbrot.pgm: {width} by {height} pixels");
    Ok(())
}
