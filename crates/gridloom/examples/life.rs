//! Conway's Game of Life, computed on the GPU or the CPU and drawn in the terminal.
//!
//! `cargo run --release --example life -- [generations]`

#![allow(clippy::print_stdout, reason = "it draws in the terminal")]

use gridloom::prelude::*;
use gridloom::{Out, kernel};

const WIDTH: usize = 64;
const HEIGHT: usize = 32;

/// One generation of cells on a torus, in rows of `width`.
#[kernel]
fn generation(width: usize, now: &[u8], next: Out<u8>) {
    let height = now.len() / width;
    if let Some(((x, y), cell)) = next.mine_2d(width) {
        let mut neighbours = 0;
        for dy in [height - 1, 0, 1] {
            for dx in [width - 1, 0, 1] {
                if dx != 0 || dy != 0 {
                    neighbours += now[(y + dy) % height * width + (x + dx) % width];
                }
            }
        }
        let is_alive = now[y * width + x] == 1;
        *cell = (neighbours == 3 || is_alive && neighbours == 2) as u8;
    }
}

fn main() -> Result<()> {
    let generations = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    let device = Device::best()?;
    let stream = device.stream()?;

    // A glider, and a row that grows.
    let mut cells = vec![0u8; WIDTH * HEIGHT];
    for (x, y) in [(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)] {
        cells[y * WIDTH + x] = 1;
    }
    cells[16 * WIDTH + 24..16 * WIDTH + 34].fill(1);
    let (now, next) = (device.buffer_from(&cells)?, device.alloc::<u8>(cells.len())?);

    let twice = two_generations(&device, &now, &next)?.instantiate()?;
    for passed in (0..=generations).step_by(2) {
        print!("{}", drawn(&now.to_vec()?, passed));
        twice.launch(&stream)?;
    }
    Ok(())
}

/// Two generations: there and back again.
pub(crate) fn two_generations(device: &Device, now: &Buffer<u8>, next: &Buffer<u8>) -> Result<Graph> {
    let generation = generation::load(device)?;
    let shape = LaunchConfig::new((WIDTH as u32 / 16, HEIGHT as u32 / 8), (16, 8));
    let graph = Graph::new(device);
    graph.launch(&generation, shape, (WIDTH, now, next))?.launch(&generation, shape, (WIDTH, next, now))?;
    Ok(graph)
}

/// Two rows of cells in each line of text.
fn drawn(cells: &[u8], passed: u32) -> String {
    let mut text = format!("generation {passed}\n");
    for rows in cells.chunks(2 * WIDTH) {
        let line = (0..WIDTH).map(|x| match (rows[x], rows[WIDTH + x]) {
            (0, 0) => ' ',
            (1, 0) => '▀',
            (0, _) => '▄',
            _ => '█',
        });
        text.extend(line.chain(['\n']));
    }
    text
}
