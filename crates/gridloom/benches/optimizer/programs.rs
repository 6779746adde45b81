//! Three programs as people write them.

use gridloom::prelude::*;

use crate::{Case, Work};

const THREADS: u32 = 256;
/// The side of the plate.
const SIDE: u32 = 128;
/// The most steps of conjugate gradients.
const STEPS: u32 = 200;
pub(crate) const PARTICLES: u32 = 16_384;
pub(crate) const SUBSTEPS: usize = 20;
/// The cells of the particles' grid.
const CELLS: u32 = 64 * 64;
pub(crate) const LAYERS: usize = 12;
/// The inputs and outputs of a layer.
const WIDTH: u32 = 512;

type Floats = (PtrMut<f32>, Ptr<f32>, u32);

/// The kernels of the programs.
pub(crate) struct ProgramKernels {
    start: Kernel<(PtrMut<f32>, PtrMut<f32>, PtrMut<f32>, Ptr<f32>, PtrMut<f32>, PtrMut<u32>, u32)>,
    residual: Kernel<Floats>,
    apply: Kernel<(PtrMut<f32>, Ptr<f32>, PtrMut<f32>, u32)>,
    length: Kernel<Floats>,
    step: Kernel<(PtrMut<f32>, PtrMut<f32>, Ptr<f32>, Ptr<f32>, Ptr<f32>, PtrMut<f32>)>,
    decide: Kernel<(ConditionHandle, PtrMut<f32>, Ptr<f32>, u32, PtrMut<u32>, f32)>,
    direction: Kernel<(PtrMut<f32>, Ptr<f32>, Ptr<f32>)>,
    advance: Kernel<(PtrMut<f32>, Ptr<f32>, f32)>,
    clear: Kernel<(PtrMut<u32>,)>,
    count: Kernel<(PtrMut<u32>, Ptr<f32>)>,
    rows: Kernel<(PtrMut<u32>, Ptr<u32>)>,
    pressure: Kernel<(PtrMut<f32>, Ptr<u32>, Ptr<u32>)>,
    force: Kernel<(PtrMut<f32>, Ptr<f32>, Ptr<f32>)>,
    push: Kernel<(PtrMut<f32>, Ptr<f32>, f32)>,
    bounce: Kernel<(PtrMut<f32>, PtrMut<f32>)>,
    layer: Kernel<(PtrMut<f32>, Ptr<f32>, Ptr<f32>, Ptr<f32>, u32)>,
}

impl ProgramKernels {
    pub(crate) fn new(module: &Module) -> Result<Self> {
        // SAFETY: every kernel reads and writes one element (particles: two) of its arrays for each
        // thread of its launch below, or of its blocks, cells and rows, and the buffers below have
        // as many.
        unsafe {
            Ok(ProgramKernels {
                start: module.kernel("cg_start")?,
                residual: module.kernel("cg_residual")?,
                apply: module.kernel("cg_apply")?,
                length: module.kernel("cg_length")?,
                step: module.kernel("cg_step")?,
                decide: module.kernel("cg_decide")?,
                direction: module.kernel("cg_direction")?,
                advance: module.kernel("particles_move")?,
                clear: module.kernel("particles_clear")?,
                count: module.kernel("particles_count")?,
                rows: module.kernel("particles_rows")?,
                pressure: module.kernel("particles_pressure")?,
                force: module.kernel("particles_force")?,
                push: module.kernel("particles_push")?,
                bounce: module.kernel("particles_bounce")?,
                layer: module.kernel("layer")?,
            })
        }
    }
}

/// Numbers between -1 and 1 that look random.
fn noise(count: u32, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

impl Work {
    /// Conjugate gradients on a plate, until the residual is small.
    pub(crate) fn conjugate_gradients(&self) -> Result<Case> {
        let kernels = &self.programs;
        let points = SIDE * SIDE;
        let blocks = points / THREADS;
        let zeros = vec![0.0f32; points as usize];
        let b = self.device.buffer_from(&noise(points, 1))?;
        let [x, r, p, q] = [(); 4].map(|()| self.device.buffer_from(&zeros));
        let (x, r, p, q) = (x?, r?, p?, q?);
        let sums = self.device.buffer_from(&zeros[..blocks as usize])?;
        let scalars = self.device.buffer_from(&[0.0f32; 4])?;
        let left = self.device.buffer_from(&[0u32])?;
        let graph = Graph::new(&self.device);
        let again = graph.condition(1)?;
        let (wide, one) = (LaunchConfig::new(blocks, THREADS), LaunchConfig::new(1, THREADS));
        let repeat = graph
            .launch(&kernels.start, wide, (&x, &r, &p, &b, &sums, &left, STEPS))?
            .launch(&kernels.residual, one, (&scalars, &sums, blocks))?
            .while_loop(&again)?;
        repeat
            .body()
            .launch(&kernels.apply, wide, (&q, &p, &sums, SIDE))?
            .launch(&kernels.length, one, (&scalars, &sums, blocks))?
            .launch(&kernels.step, wide, (&x, &r, &p, &q, &scalars, &sums))?
            .launch(&kernels.decide, one, (&again, &scalars, &sums, blocks, &left, 1e-6f32))?
            .launch(&kernels.direction, wide, (&p, &r, &scalars))?;
        Ok(Case::new(graph).floats([x, r, p, scalars]).words([left]).condition(again))
    }

    /// A step of particles: eight kernels for each substep.
    pub(crate) fn particles(&self) -> Result<Case> {
        let kernels = &self.programs;
        let places: Vec<f32> = noise(2 * PARTICLES, 2).iter().map(|at| 0.5 + 0.45 * at).collect();
        let position = self.device.buffer_from(&places)?;
        let speed = self.device.buffer_from(&noise(2 * PARTICLES, 3))?;
        let force = self.device.buffer_from(&vec![0.0f32; 2 * PARTICLES as usize])?;
        let pressure = self.device.buffer_from(&vec![0.0f32; CELLS as usize])?;
        let counts = self.device.buffer_from(&vec![0u32; CELLS as usize])?;
        let rows = self.device.buffer_from(&[0u32; 64])?;
        let graph = Graph::new(&self.device);
        let each = LaunchConfig::new(PARTICLES / THREADS, THREADS);
        let cells = LaunchConfig::new(CELLS / THREADS, THREADS);
        let dt = 0.001f32;
        let mut last: Option<Node> = None;
        for _ in 0..SUBSTEPS {
            let args = (&position, &speed, dt);
            let first = match &last {
                None => graph.launch(&kernels.advance, each, args)?,
                Some(last) => last.launch(&kernels.advance, each, args)?,
            };
            let end = first
                .launch(&kernels.clear, cells, (&counts,))?
                .launch(&kernels.count, each, (&counts, &position))?
                .launch(&kernels.rows, LaunchConfig::new(1, THREADS), (&rows, &counts))?
                .launch(&kernels.pressure, cells, (&pressure, &counts, &rows))?
                .launch(&kernels.force, each, (&force, &position, &pressure))?
                .launch(&kernels.push, each, (&speed, &force, dt))?
                .launch(&kernels.bounce, each, (&position, &speed))?;
            last = Some(end);
        }
        Ok(Case::new(graph).floats([position, speed, pressure]).words([counts, rows]))
    }

    /// Inference of a perceptron for one input.
    pub(crate) fn perceptron(&self) -> Result<Case> {
        let graph = Graph::new(&self.device);
        let config = LaunchConfig::new(WIDTH / 8, THREADS);
        let mut values = vec![self.device.buffer_from(&noise(WIDTH, 4))?];
        let mut last: Option<Node> = None;
        for layer in 0..LAYERS as u32 {
            let scale = |values: Vec<f32>| values.iter().map(|value| 0.1 * value).collect::<Vec<f32>>();
            let weights = self.device.buffer_from(&scale(noise(WIDTH * WIDTH, 10 + layer)))?;
            let bias = self.device.buffer_from(&noise(WIDTH, 40 + layer))?;
            let out = self.device.buffer_from(&vec![0.0f32; WIDTH as usize])?;
            let args = (&out, &weights, &bias, &values[layer as usize], WIDTH);
            last = Some(match &last {
                None => graph.launch(&self.programs.layer, config, args)?,
                Some(last) => last.launch(&self.programs.layer, config, args)?,
            });
            values.push(out);
        }
        Ok(Case::new(graph).floats(values))
    }
}
