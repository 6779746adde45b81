//! Capture of code that calls CUDA itself.

mod cublas;

use gridloom::prelude::*;
use gridloom::{CaptureState, DeviceKind};

use self::cublas::{Cublas, product};
use crate::support::{for_each_device, for_each_gpu};

#[test]
fn a_device_that_is_no_gpu_refuses_foreign_code_and_the_capture_goes_on() {
    for_each_device(|device| {
        if device.kind() == DeviceKind::Cuda {
            return Ok(());
        }
        let (stream, buffer) = (device.stream()?, device.buffer_from(&[0u32; 4])?);
        let capture = stream.capture()?;
        // SAFETY: the code is not run.
        let refused = unsafe { capture.foreign(CaptureMode::Relaxed, |_| panic!("not to be run")) };
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.message().contains("needs a CUDA device"), "{error}");
        assert_eq!(capture.state(), CaptureState::Capturing);
        capture.memset(&buffer, 3u32)?;
        capture.end()?.instantiate()?.launch(&stream)?;
        assert_eq!(buffer.to_vec()?, [3; 4]);
        Ok(())
    });
}

/// The operands of products of square matrices, and where the outcome goes.
struct Operands {
    a: Buffer<f32>,
    b: [Buffer<f32>; 2],
    c: Buffer<f32>,
    workspace: Buffer<u8>,
}

const N: usize = 96;

/// Small whole numbers, whose products are exact.
fn matrix(seed: usize) -> Vec<f32> {
    (0..N * N).map(|index| ((index * 7 + seed * 13) % 11) as f32 - 5.0).collect()
}

impl Operands {
    fn new(device: &Device, cublas: &Cublas) -> Result<Self> {
        let made = Operands {
            a: device.buffer_from(&matrix(1))?,
            b: [device.buffer_from(&matrix(2))?, device.buffer_from(&matrix(3))?],
            c: device.buffer_from(&vec![0.0; N * N])?,
            workspace: device.alloc::<u8>(32 << 20)?,
        };
        // The library loads a kernel when it first needs it, which a driver refuses during a
        // capture.
        cublas.multiply(std::ptr::null_mut(), N, &made.a, &made.b[0], &made.c, &made.workspace)?;
        device.synchronize()?;
        made.c.write(&vec![0.0; N * N])?;
        Ok(made)
    }

    /// Captures `c = a · b[index] + 1` after a fill of `c`.
    fn capture(
        &self,
        stream: &Stream,
        cublas: &std::sync::Arc<Cublas>,
        index: usize,
    ) -> Result<(Graph, Vec<Node>)> {
        let mut nodes = Vec::new();
        let graph = stream.capture_scope(|capture| {
            capture.memset(&self.c, 1.0f32)?;
            let mode = CaptureMode::ThreadLocal.keeping(cublas.clone());
            // SAFETY: the library stays loaded, its handle exists while `cublas` does, and the
            // matrices and the workspace are Gridloom's.
            nodes = unsafe {
                capture.foreign(mode, |raw| {
                    cublas.multiply(raw.raw().cast(), N, &self.a, &self.b[index], &self.c, &self.workspace)
                })?
            };
            cublas.leave_stream()
        })?;
        Ok((graph, nodes))
    }

    fn expected(index: usize) -> Vec<f32> {
        product(N, &matrix(1), &matrix(2 + index), 1.0)
    }
}

#[test]
fn a_product_of_cublas_is_captured_launched_again_and_pointed_at_another_operand() {
    for_each_gpu(|device| {
        let Some(cublas) = Cublas::open(device) else { return Ok(()) };
        let (stream, operands) = (device.stream()?, Operands::new(device, &cublas)?);
        let (graph, nodes) = operands.capture(&stream, &cublas, 0)?;
        assert!(!nodes.is_empty());
        let exec = graph.instantiate()?;
        for _ in 0..2 {
            exec.launch(&stream)?;
            assert_eq!(operands.c.to_vec()?, Operands::expected(0));
        }
        if nodes.iter().any(|node| node.kind().is_ok_and(|kind| kind == NodeKind::Opaque)) {
            // A driver before 12.4 tells no parameters; a new capture is the way to other operands
            // then.
            exec.update(&operands.capture(&stream, &cublas, 1)?.0)?;
            exec.launch(&stream)?;
            assert_eq!(operands.c.to_vec()?, Operands::expected(1));
            return Ok(());
        }
        // SAFETY: both are matrices of the same size.
        let uses = unsafe { exec.replace_memory(&operands.b[0], &operands.b[1])? };
        assert!(uses >= 1, "the operand is among the arguments");
        exec.launch(&stream)?;
        assert_eq!(operands.c.to_vec()?, Operands::expected(1));
        // The definition is as it was, until it is changed too.
        graph.instantiate()?.launch(&stream)?;
        assert_eq!(operands.c.to_vec()?, Operands::expected(0));
        // SAFETY: as above.
        assert_eq!(unsafe { graph.replace_memory(&operands.b[0], &operands.b[1])? }, uses);
        graph.instantiate()?.launch(&stream)?;
        assert_eq!(operands.c.to_vec()?, Operands::expected(1));
        Ok(())
    });
}

#[test]
fn an_executable_of_a_product_takes_over_another_capture_of_it() {
    for_each_gpu(|device| {
        let Some(cublas) = Cublas::open(device) else { return Ok(()) };
        let (stream, operands) = (device.stream()?, Operands::new(device, &cublas)?);
        let exec = operands.capture(&stream, &cublas, 0)?.0.instantiate()?;
        exec.update(&operands.capture(&stream, &cublas, 1)?.0)?;
        exec.launch(&stream)?;
        assert_eq!(operands.c.to_vec()?, Operands::expected(1));
        Ok(())
    });
}

#[test]
fn a_product_that_stays_opaque_runs_too_also_in_a_loop() {
    for_each_gpu(|device| {
        let Some(cublas) = Cublas::open(device) else { return Ok(()) };
        let (stream, operands) = (device.stream()?, Operands::new(device, &cublas)?);
        let graph = stream.capture_scope(|capture| {
            capture.memset(&operands.c, 0.0f32)?;
            capture.repeat(3)?.fill(|body| {
                let mode = CaptureMode::ThreadLocal.keeping(cublas.clone()).opaque();
                let Operands { a, b, c, workspace } = &operands;
                // SAFETY: as for the other products.
                let nodes = unsafe {
                    body.foreign(mode, |raw| cublas.multiply(raw.raw().cast(), N, a, &b[0], c, workspace))?
                };
                assert_eq!(nodes[0].kind()?, NodeKind::Opaque);
                cublas.leave_stream()
            })?;
            Ok(())
        })?;
        graph.instantiate()?.launch(&stream)?;
        let once = product(N, &matrix(1), &matrix(2), 0.0);
        let thrice: Vec<f32> = once.iter().map(|value| 3.0 * value).collect();
        assert_eq!(operands.c.to_vec()?, thrice);
        Ok(())
    });
}

#[test]
fn the_operands_of_a_captured_product_may_be_dropped() {
    for_each_gpu(|device| {
        let Some(cublas) = Cublas::open(device) else { return Ok(()) };
        let (stream, operands) = (device.stream()?, Operands::new(device, &cublas)?);
        let (graph, nodes) = operands.capture(&stream, &cublas, 0)?;
        if nodes.iter().any(|node| node.kind().is_ok_and(|kind| kind == NodeKind::Opaque)) {
            return Ok(());
        }
        let (c, exec) = (operands.c.clone(), graph.instantiate()?);
        drop((graph, nodes, operands, cublas));
        // What was freed too early would be handed out again here, and overwritten.
        let others: Vec<Buffer<f32>> =
            (0..8).map(|_| device.buffer_from(&vec![9.0; N * N])).collect::<Result<_>>()?;
        exec.launch(&stream)?;
        assert_eq!(c.to_vec()?, Operands::expected(0));
        drop(others);
        Ok(())
    });
}
