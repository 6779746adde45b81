//! Conway's Game of Life on a torus, with a kernel written in Rust.

use gridloom::prelude::*;
use gridloom::{GraphSaver, Out, kernel};

use super::{Checked, Scene, expect};
use crate::image::Image;

/// One generation of cells on a torus, in rows of `width`.
#[kernel]
fn generation(width: usize, now: &[u8], next: Out<u8>) {
    let height = now.len() / width;
    if let Some((i, cell)) = next.mine() {
        let (x, y) = (i % width, i / width);
        let mut neighbours = 0;
        for dy in [height - 1, 0, 1] {
            for dx in [width - 1, 0, 1] {
                if dx != 0 || dy != 0 {
                    neighbours += now[(y + dy) % height * width + (x + dx) % width];
                }
            }
        }
        let is_alive = now[i] == 1;
        *cell = (neighbours == 3 || is_alive && neighbours == 2) as u8;
    }
}

/// Counts one pass.
#[kernel]
fn count_down(left: Out<i32>) {
    if let Some((_, left)) = left.mine() {
        *left -= 1;
    }
}

struct Board {
    graph: Graph,
    now: Buffer<u8>,
    passes: Buffer<i32>,
    width: usize,
}

pub(super) fn build(device: &Device, size: u32, _passes: u32) -> Result<Box<dyn Scene>> {
    let (width, cells) = (size as usize, (size as usize).pow(2));
    let (generation, count_down) = (generation::load(device)?, count_down::load(device)?);
    let (now, next) = (device.alloc::<u8>(cells)?, device.alloc::<u8>(cells)?);
    let (left, passes) = (device.alloc::<i32>(1)?, device.alloc_host::<i32>(1)?);
    let graph = Graph::new(device);
    let repeat =
        graph.memcpy(&left, &passes)?.named("generations to make")?.while_nonzero(&left)?.named("live")?;
    repeat
        .body()
        .launch(&generation, LaunchConfig::linear(cells), (width, &now, &next))?
        .memcpy(&now, &next)?
        .launch(&count_down, LaunchConfig::one(), (&left,))?;
    Ok(Box::new(Board { graph, now, passes, width }))
}

/// Returns a field of cells that looks random, and a glider.
fn first(width: usize) -> Vec<u8> {
    let mut state = 2463534242u32;
    let mut cells: Vec<u8> = (0..width * width)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            u8::from(state.is_multiple_of(5))
        })
        .collect();
    for (x, y) in [(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)] {
        cells[y % width * width + x % width] = 1;
    }
    cells
}

fn reference(width: usize, passes: u32) -> Vec<u8> {
    let mut now = first(width);
    for _ in 0..passes {
        let alive = |x: usize, y: usize| now[y % width * width + x % width];
        let next = (0..width * width).map(|i| {
            let (x, y) = (i % width + width, i / width + width);
            let around: u8 = (0..9)
                .filter(|&place| place != 4)
                .map(|place| alive(x + place % 3 - 1, y + place / 3 - 1))
                .sum();
            u8::from(around == 3 || now[i] == 1 && around == 2)
        });
        now = next.collect();
    }
    now
}

impl Scene for Board {
    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn saver(&self) -> Result<GraphSaver> {
        let saver = self.graph.saver().input("cells", &self.now)?.output("cells", &self.now)?;
        saver.shape("cells", &[self.width, self.width])?.input("passes", &self.passes)
    }

    fn begin(&self) -> Result<()> {
        self.now.write(&first(self.width))
    }

    fn set_passes(&self, passes: u32) -> Result<()> {
        self.passes.write(&[passes as i32])
    }

    fn picture(&self) -> Result<Image> {
        Ok(Image::new(self.width, self.now.to_vec()?.iter().map(|&cell| f32::from(cell)).collect()))
    }

    fn check(&self, passes: u32) -> Checked<String> {
        let cells = self.now.to_vec()?;
        let alive = cells.iter().filter(|&&cell| cell == 1).count();
        expect(cells == reference(self.width, passes), "other cells live than on the host")?;
        let width = self.width;
        let generations = if passes == 1 { "generation" } else { "generations" };
        Ok(format!(
            "{alive} of {width} × {width} cells live after {passes} {generations}, the same as on the host"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_moves_a_glider() {
        // A field with the glider alone, by four generations, is the same one cell further.
        let width = 8;
        let glider = |shift: usize| {
            let mut cells = vec![0u8; width * width];
            for (x, y) in [(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)] {
                cells[(y + shift) * width + x + shift] = 1;
            }
            cells
        };
        let step = |now: &[u8]| -> Vec<u8> {
            let mut next = vec![0u8; now.len()];
            gridloom::host::run(1, 64, || generation(width, now, Out::new(&mut next)));
            next
        };
        let moved = (0..4).fold(glider(0), |now, _| step(&now));
        assert_eq!(moved, glider(1));
    }
}
