//! Arguments of kernels.

use gridloom::contract::{Contract, arg, len};
use gridloom::kernel::Arg;
use gridloom::prelude::*;

use crate::support::{Bench, for_each_device, refused};

const PTX: &str = include_str!("../support/graph.ptx");

#[test]
fn a_parameter_list_that_does_not_fit_is_refused_at_look_up() {
    for_each_device(|device| {
        let module = device.load_ptx(PTX)?;
        // `increase(x: u64, n: u32, by: s32)`.
        // SAFETY: none of these is launched.
        unsafe {
            let mismatch = ErrorKind::ParameterMismatch;
            let too_few = module.kernel::<(PtrMut<i32>, u32)>("increase");
            refused(too_few, mismatch, &["increase", "3 parameters", "[8, 4, 4]", "2 of [8, 4]"]);
            let too_many = module.kernel::<(PtrMut<i32>, u32, i32, i32)>("increase");
            refused(too_many, mismatch, &["increase", "4 of [8, 4, 4, 4]"]);
            refused(module.kernel::<(PtrMut<i32>, u64, i32)>("increase"), mismatch, &["[8, 8, 4]"]);
            refused(module.kernel::<()>("increase"), mismatch, &["0 of []"]);
            module.kernel::<(Ptr<f32>, f32, [u8; 4])>("increase")?;
        }
        Ok(())
    });
}

#[test]
fn an_untyped_launch_is_checked_when_it_is_added() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let (kernel, value) = (bench.module.untyped_kernel("increase")?, bench.buffer(&[1])?);
        let params = kernel.params().expect("known from the PTX");
        let layout: Vec<(u32, u32)> = params.iter().map(|param| (param.offset, param.size)).collect();
        assert_eq!(layout, [(0, 8), (8, 4), (12, 4)]);
        let launch = |args: Vec<Arg>| {
            // SAFETY: those that are not refused are the arguments that the kernel takes.
            unsafe { bench.stream.launch_untyped(&kernel, LaunchConfig::one(), args) }
        };
        let memory = || Arg::memory(&value);
        let mismatch = ErrorKind::ParameterMismatch;
        refused(launch(vec![memory()?]), mismatch, &["increase", "3 parameters", "1 arguments"]);
        let four = vec![memory()?, Arg::value(1u32), Arg::value(2i32), Arg::value(3i32)];
        refused(launch(four), mismatch, &["increase", "3 parameters", "more"]);
        let wide = vec![memory()?, Arg::value(1u64), Arg::value(2i32)];
        refused(launch(wide), mismatch, &["parameter 1", "4 bytes", "has 8"]);
        launch(vec![memory()?, Arg::value(1u32), Arg::bytes(&5i32.to_ne_bytes())])?;
        assert_eq!(value.to_vec()?, [6]);
        Ok(())
    });
}

#[test]
fn an_untyped_kernel_takes_a_condition() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let set = bench.module.untyped_kernel("set_condition")?;
        let increase = bench.kernel::<(PtrMut<i32>, Len<u32>, i32)>("increase")?.untyped();
        let (one, value) = (bench.buffer(&[1])?, bench.buffer(&[0])?);
        let graph = Graph::new(device);
        let condition = graph.condition(None)?;
        let config = LaunchConfig::one();
        // SAFETY: the arguments are what the kernels take.
        unsafe {
            let args = [Arg::condition(&condition), Arg::memory(&one)?];
            let choice = graph.launch_untyped(&set, config, args)?.if_then(&condition)?;
            let args = [Arg::memory(&value)?, Arg::value(1u32), Arg::value(9i32)];
            choice.body().launch_untyped(&increase, config, args)?;
        }
        graph.instantiate()?.launch(&bench.stream)?;
        assert_eq!(value.to_vec()?, [9]);
        Ok(())
    });
}

#[test]
fn a_null_pointer_and_a_slice_are_arguments() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let any = bench.kernel_with::<(Nullable<PtrMut<i32>>, Len<u32>, i32)>(
            "increase",
            // With `n` = 0 the pointer is never followed.
            Contract::new().at_most(arg(1), len(0)),
        )?;
        let increase = bench.kernel::<(PtrMut<i32>, Len<u32>, i32)>("increase")?;
        let values = bench.buffer(&[1, 2, 3, 4])?;
        bench.stream.launch(&any, LaunchConfig::one(), (Null, 0, 1))?;
        bench.stream.launch(&any, LaunchConfig::one(), (&values, 0, 1))?;
        bench.stream.launch(&increase, LaunchConfig::linear(2), (&values.slice(1..3)?, 2, 10))?;
        assert_eq!(values.to_vec()?, [1, 12, 13, 4]);
        Ok(())
    });
}

#[test]
fn arguments_are_copied_when_the_launch_is_added() {
    for_each_device(|device| {
        let bench = Bench::new(device, PTX)?;
        let increase = bench.kernel::<(PtrMut<i32>, Len<u32>, i32)>("increase")?;
        let value = bench.buffer(&[0])?;
        let graph = Graph::new(device);
        let mut by = 5;
        graph.launch(&increase, LaunchConfig::one(), (&value, 1, by))?;
        by += 1;
        let executable = graph.instantiate()?;
        executable.launch(&bench.stream)?;
        assert_eq!((value.to_vec()?[0], by), (5, 6));
        Ok(())
    });
}
