//! What launches of kernels in Rust are checked for.

use gridloom::prelude::*;
use gridloom::{Out, host, kernel};

use crate::support::for_each_device;

#[kernel]
fn saxpy(a: f32, x: &[f32], y: Out<f32>) {
    if let Some((i, y)) = y.mine() {
        *y = a * x[i] + *y;
    }
}

#[test]
fn a_kernel_is_loaded_and_launched_without_unsafe() {
    let (x, mut y) = ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]);
    host::run(1, 4, || saxpy(2.0, &x, Out::new(&mut y)));
    assert_eq!(y, [12.0, 24.0, 36.0]);
    for_each_device(|device| {
        let saxpy = saxpy::load(device)?;
        let (x, y) = (device.buffer_from(&x)?, device.buffer_from(&[10.0, 20.0, 30.0])?);
        let stream = device.stream()?;
        stream.launch(&saxpy, LaunchConfig::linear(3), (2.0, &x, &y))?;
        assert_eq!(y.to_vec()?, [12.0, 24.0, 36.0]);
        Ok(())
    });
}

#[test]
fn a_kernel_knows_the_length_of_what_it_is_given() {
    #[kernel]
    fn lengths(x: &[u8], out: Out<u64>) {
        let total = out.len();
        if let Some((_, out)) = out.mine() {
            *out = (x.len() * 100 + total) as u64;
        }
    }
    for_each_device(|device| {
        let lengths = lengths::load(device)?;
        let (x, out) = (device.buffer_from(&[0u8; 9])?, device.buffer_from(&[0u64; 2])?);
        let stream = device.stream()?;
        stream.launch(&lengths, LaunchConfig::linear(2), (&x.slice(2..)?, &out))?;
        assert_eq!(out.to_vec()?, [702, 702]);
        stream.launch(&lengths, LaunchConfig::linear(2), (&x.slice(3..3)?, &out))?;
        assert_eq!(out.to_vec()?, [2, 2]);
        Ok(())
    });
}

#[test]
fn memory_that_is_written_is_apart_from_all_other() {
    for_each_device(|device| {
        let saxpy = saxpy::load(device)?;
        let memory = device.buffer_from(&[1.0f32; 8])?;
        let stream = device.stream()?;
        let launch = |x: &BufferSlice<f32>, y: &BufferSlice<f32>| {
            stream.launch(&saxpy, LaunchConfig::linear(4), (1.0, x, y))
        };
        let error = launch(&memory.slice(..4)?, &memory.slice(3..7)?).expect_err("they share an element");
        assert_eq!(error.kind(), ErrorKind::ContractViolation);
        assert!(error.to_string().contains("overlaps"), "{error}");
        launch(&memory.slice(..4)?, &memory.slice(4..)?)?;
        assert_eq!(memory.to_vec()?, [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);

        let graph = Graph::new(device);
        let alloc = graph.alloc::<f32>(8)?;
        let error = alloc
            .launch(&saxpy, LaunchConfig::linear(8), (1.0, &alloc, &alloc))
            .expect_err("it is the same memory");
        assert_eq!(error.kind(), ErrorKind::ContractViolation);
        Ok(())
    });
}

#[test]
fn a_change_of_arguments_is_checked_as_a_launch_is() {
    for_each_device(|device| {
        let saxpy = saxpy::load(device)?;
        let (x, y) = (device.buffer_from(&[1.0f32; 8])?, device.buffer_from(&[1.0f32; 8])?);
        let graph = Graph::new(device);
        let node = graph.launch(&saxpy, LaunchConfig::linear(8), (1.0, &x, &y))?;
        let exec = graph.instantiate()?;
        let stream = device.stream()?;
        for a in [2.0, 3.0, 4.0] {
            exec.node(&node)?.set_args(&saxpy, (a, &x, &y))?;
            exec.launch(&stream)?;
        }
        assert_eq!(y.to_vec()?, [10.0; 8]);
        assert_eq!(
            exec.node(&node)?.set_args(&saxpy, (1.0, &y, &y)).expect_err("the same").kind(),
            ErrorKind::ContractViolation
        );
        exec.node(&node)?.set_args(&saxpy, (1.0, &x, &y.slice(..3)?))?;
        exec.launch(&stream)?;
        assert_eq!(y.to_vec()?, [11.0, 11.0, 11.0, 10.0, 10.0, 10.0, 10.0, 10.0]);
        Ok(())
    });
}

#[test]
fn a_kernel_of_one_dimension_is_launched_in_one() {
    for_each_device(|device| {
        let saxpy = saxpy::load(device)?;
        let (x, y) = (device.buffer_from(&[1.0f32; 8])?, device.buffer_from(&[1.0f32; 8])?);
        let stream = device.stream()?;
        for config in [LaunchConfig::new(1, (4, 2)), LaunchConfig::new((1, 2), 4)] {
            let error =
                stream.launch(&saxpy, config, (1.0, &x, &y)).expect_err("threads would share elements");
            assert_eq!(error.kind(), ErrorKind::ContractViolation);
        }
        Ok(())
    });
}

#[test]
fn a_callable_gives_a_kernel_other_arrays_and_lengths() {
    for_each_device(|device| {
        let saxpy = saxpy::load(device)?;
        let callable =
            Callable::new(device, move |g, (a, x, y): (Scalar<f32>, Param<[f32]>, Param<[f32]>)| {
                g.launch(&saxpy, per_element(&y), (&a, &x, &y))
            });
        let stream = device.stream()?;
        for len in [3usize, 700, 5] {
            let (x, y) = (device.buffer_from(&vec![2.0f32; len])?, device.buffer_from(&vec![1.0f32; len])?);
            callable.call(&stream, (10.0, &x, &y))?;
            assert_eq!(y.to_vec()?, vec![21.0; len]);
        }
        Ok(())
    });
}
