//! Replacing memory in one node, a graph or an executable.

use gridloom::kernel::Arg;
use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

#[test]
fn every_use_of_a_buffer_is_pointed_at_another() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (a, b, out) = (k.value(1)?, k.value(10)?, k.value(0)?);
        let graph = Graph::new(device);
        let repeat = graph.repeat(3)?;
        repeat.body().launch(&k.increase, LaunchConfig::one(), (&a, 1, 1))?;
        repeat.memcpy(&out, &a)?;
        let exec = graph.instantiate()?;
        // SAFETY: both buffers hold one integer.
        assert_eq!(unsafe { exec.replace_memory(&a, &b)? }, 2);
        exec.launch(&k.stream)?;
        assert_eq!((a.to_vec()?, b.to_vec()?, out.to_vec()?), (vec![1], vec![13], vec![13]));
        k.run(&graph)?;
        assert_eq!((a.to_vec()?, out.to_vec()?), (vec![4], vec![4]));
        // SAFETY: as above.
        assert_eq!(unsafe { graph.replace_memory(&a, &b)? }, 2);
        k.run(&graph)?;
        assert_eq!((a.to_vec()?, b.to_vec()?, out.to_vec()?), (vec![4], vec![16], vec![16]));
        Ok(())
    });
}

#[test]
fn one_node_is_pointed_at_other_memory_and_the_others_stay() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (a, b) = (k.value(0)?, k.value(0)?);
        let graph = Graph::new(device);
        let first = graph.launch(&k.increase, LaunchConfig::one(), (&a, 1, 1))?;
        first.launch(&k.increase, LaunchConfig::one(), (&a, 1, 10))?;
        // SAFETY: both buffers hold one integer.
        unsafe {
            assert_eq!(first.replace_memory(&a, &b)?, 1);
            assert_eq!(first.replace_memory(&a, &b)?, 0);
        }
        k.run(&graph)?;
        assert_eq!((a.to_vec()?, b.to_vec()?), (vec![10], vec![1]));
        Ok(())
    });
}

#[test]
fn a_part_of_an_argument_is_set_where_it_fits() {
    for_each_device(|device| {
        let k = GraphKernels::new(device)?;
        let (a, b) = (k.value(0)?, k.value(0)?);
        let graph = Graph::new(device);
        let node = graph.launch(&k.increase, LaunchConfig::one(), (&a, 1, 0x100))?;
        // SAFETY: the kernel adds its third argument to what its first leads to.
        unsafe {
            node.set_arg_part(2, 0, Arg::value(7u8))?;
            node.set_arg_part(0, 0, Arg::memory(&b)?)?;
            refused(node.set_arg_part(2, 1, Arg::value(7u32)), ErrorKind::ParameterMismatch, &["4 bytes"]);
            refused(node.set_arg_unchecked(2, Arg::value(7u8)), ErrorKind::ParameterMismatch, &["4 bytes"]);
        }
        k.run(&graph)?;
        assert_eq!((a.to_vec()?, b.to_vec()?), (vec![0], vec![0x107]));
        Ok(())
    });
}
