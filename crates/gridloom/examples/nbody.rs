//! Bodies that attract each other, computed on the GPU or the CPU.
//!
//! `cargo run --release --example nbody -- [bodies]`

#![allow(clippy::print_stdout, reason = "it says what became of the bodies")]

use gridloom::prelude::*;
use gridloom::{Out, kernel};

/// What keeps bodies that come close from being thrown out.
const SOFTENING: f32 = 0.01;

/// Changes the velocity of each body by the attraction of all others. A body is its position and
/// its mass.
#[kernel]
fn attract(dt: f32, bodies: &[[f32; 4]], velocities: Out<[f32; 3]>) {
    if let Some((i, velocity)) = velocities.mine() {
        let own = bodies[i];
        let (mut ax, mut ay, mut az) = (0.0, 0.0, 0.0);
        for other in bodies {
            let (dx, dy, dz) = (other[0] - own[0], other[1] - own[1], other[2] - own[2]);
            let squared = dx * dx + dy * dy + dz * dz + SOFTENING;
            let force = other[3] / (squared * squared.sqrt());
            ax = dx.mul_add(force, ax);
            ay = dy.mul_add(force, ay);
            az = dz.mul_add(force, az);
        }
        velocity[0] += ax * dt;
        velocity[1] += ay * dt;
        velocity[2] += az * dt;
    }
}

#[kernel]
fn advance(dt: f32, velocities: &[[f32; 3]], bodies: Out<[f32; 4]>) {
    if let Some((i, body)) = bodies.mine() {
        let velocity = velocities[i];
        body[0] += velocity[0] * dt;
        body[1] += velocity[1] * dt;
        body[2] += velocity[2] * dt;
    }
}

fn main() -> Result<()> {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1024usize);
    let device = Device::best()?;
    let stream = device.stream()?;

    // Bodies on a spiral around the middle, each moving along it.
    let place = |i: usize| (i as f32 * 0.7, 0.2 + i as f32 / count as f32);
    let bodies: Vec<[f32; 4]> = (0..count)
        .map(|i| {
            let (angle, radius) = place(i);
            [radius * angle.cos(), radius * angle.sin(), 0.1 * (angle * 3.0).sin(), 1.0 / count as f32]
        })
        .collect();
    let velocities: Vec<[f32; 3]> =
        (0..count).map(|i| place(i).0).map(|angle| [-angle.sin(), angle.cos(), 0.0]).collect();
    let (bodies, velocities) = (device.buffer_from(&bodies)?, device.buffer_from(&velocities)?);

    let hundred = hundred_steps(&device, &bodies, &velocities)?.instantiate()?;
    for round in 0..=5 {
        let radii = bodies.to_vec()?.into_iter().map(|body| body[0].hypot(body[1]));
        let mean = radii.sum::<f32>() / count as f32;
        println!("after {:4} steps the bodies are {mean:.3} from the middle on average", 100 * round);
        hundred.launch(&stream)?;
    }
    stream.synchronize()
}

/// A hundred steps in time.
pub(crate) fn hundred_steps(
    device: &Device,
    bodies: &Buffer<[f32; 4]>,
    velocities: &Buffer<[f32; 3]>,
) -> Result<Graph> {
    let (dt, shape) = (0.01f32, LaunchConfig::linear(bodies.len()));
    let (attract, advance) = (attract::load(device)?, advance::load(device)?);
    let graph = Graph::new(device);
    let step = graph.repeat(100)?.body().launch(&attract, shape, (dt, bodies, velocities))?;
    step.launch(&advance, shape, (dt, velocities, bodies))?;
    Ok(graph)
}
