//! Single arguments that are changed by position. It is safe, because their types are checked.

use gridloom::contract::Contract;
use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

const MISMATCH: ErrorKind = ErrorKind::ParameterMismatch;

/// Has `check` work on a node of a definition, and on the same node of an executable made before.
macro_rules! on_both {
    ($graph:expr, $node:expr, $exec:ident, |$at:ident| $check:block) => {{
        let $exec = $graph.instantiate()?;
        {
            let $at = $exec.node(&$node)?;
            // What is changed often is no other case.
            for _ in 0..3 $check
        }
        let $at = &$node;
        $check
    }};
}

#[test]
fn a_plain_value_is_taken_where_it_has_the_very_type_of_the_parameter() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.buffer(&[0; 4])?;
        let graph = Graph::new(device);
        let node = graph.launch(&k.increase, LaunchConfig::linear(4), (&x, 4, 1))?.named("four")?;
        on_both!(graph, node, exec, |at| {
            at.set_arg(2, 10i32)?;
            refused(at.set_arg(2, 10u32), MISMATCH, &["four", "i32", "u32"]);
            refused(at.set_arg(2, 1.0f32), MISMATCH, &["four", "i32", "f32"]);
            refused(at.set_arg(2, 10i64), MISMATCH, &["four", "i32", "i64"]);
            refused(at.set_arg(2, &x), MISMATCH, &["four", "i32", "memory of i32"]);
            refused(at.set_arg(3, 10i32), MISMATCH, &["four", "no parameter 3"]);
            refused(at.set_arg(usize::MAX, 10i32), MISMATCH, &["four", "no parameter"]);
        });
        k.run(&graph)?;
        assert_eq!(x.to_vec()?, [10; 4]);
        Ok(())
    });
}

#[test]
fn memory_is_taken_where_its_elements_have_the_very_type_of_the_pointer() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (x, y) = (k.buffer(&[0; 4])?, k.buffer(&[0; 4])?);
        let (short, floats) = (k.buffer(&[0; 2])?, device.buffer_from(&[0.0f32; 4])?);
        let graph = Graph::new(device);
        let node = graph.launch(&k.increase, LaunchConfig::linear(4), (&x, 4, 1))?.named("four")?;
        on_both!(graph, node, exec, |at| {
            at.set_arg(0, &y)?;
            at.set_arg(0, &y.slice(..)?)?;
            refused(at.set_arg(0, &floats), MISMATCH, &["four", "memory of f32"]);
            refused(at.set_arg(0, y.to_vec()?.len()), MISMATCH, &["four", "usize"]);
            refused(at.set_arg(0, 0u64), MISMATCH, &["four", "u64"]);
            refused(at.set_arg(0, &short), ErrorKind::ContractViolation, &["four", "has 2 elements"]);
        });
        k.run(&graph)?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![0; 4], vec![1; 4]));
        Ok(())
    });
}

#[test]
fn any_integer_that_fits_is_taken_for_a_length() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.buffer(&[0; 4])?;
        let graph = Graph::new(device);
        let node = graph.launch(&k.increase, LaunchConfig::linear(4), (&x, 4, 1))?.named("four")?;
        on_both!(graph, node, exec, |at| {
            at.set_arg(1, 1u32)?;
            at.set_arg(1, 4i64)?;
            at.set_arg(1, 2usize)?;
            refused(at.set_arg(1, -1i32), ErrorKind::InvalidArgument, &["four", "does not fit"]);
            refused(at.set_arg(1, 1u64 << 32), ErrorKind::InvalidArgument, &["four", "does not fit"]);
            refused(at.set_arg(1, 2.0f32), MISMATCH, &["four", "f32"]);
            refused(at.set_arg(1, 5), ErrorKind::ContractViolation, &["four", "needs 5"]);
        });
        k.run(&graph)?;
        assert_eq!(x.to_vec()?, [1, 1, 0, 0]);
        Ok(())
    });
}

#[test]
fn a_contract_between_arguments_is_checked_with_each() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.buffer(&[0; 4])?;
        let contract = Contract::new().at_most(gridloom::contract::arg(2), 9);
        // SAFETY: the kernel adds its third argument to as many integers as its second one says.
        let increase = unsafe { k.increase.untyped().typed_with::<(PtrMut<i32>, Len<u32>, i32)>(contract)? };
        let graph = Graph::new(device);
        let node = graph.launch(&increase, LaunchConfig::linear(4), (&x, 4, 1))?.named("four")?;
        on_both!(graph, node, exec, |at| {
            at.set_arg(2, 9i32)?;
            refused(at.set_arg(2, 10i32), ErrorKind::ContractViolation, &["four", "at most 9"]);
        });
        k.run(&graph)?;
        assert_eq!(x.to_vec()?, [9; 4]);
        Ok(())
    });
}

#[test]
fn a_kernel_that_was_launched_without_its_types_takes_no_single_value_safely() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let x = k.buffer(&[0; 4])?;
        let graph = Graph::new(device);
        // SAFETY: the memory holds as many integers.
        let node = unsafe { graph.launch_unchecked(&k.increase, LaunchConfig::linear(4), (&x, 4, 1))? };
        on_both!(graph, node, exec, |at| {
            refused(at.set_arg(2, 1i32), ErrorKind::NotSupported, &["set_arg_unchecked"]);
        });
        Ok(())
    });
}
