//! Contracts of kernels whose arguments change in an executable, one at a time.

use gridloom::contract::{Contract, arg};
use gridloom::prelude::*;

use crate::support::{GraphKernels, for_each_device, refused};

#[test]
fn one_changed_argument_is_checked_if_the_contract_depends_on_it() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let module = device.load_ptx(include_str!("../support/graph.ptx"))?;
        // SAFETY: the kernel uses as many elements as its second argument says.
        let increase = unsafe {
            module.kernel_with::<(PtrMut<i32>, u32, i32)>("increase", Contract::new().holds(0, arg(1)))?
        };
        let (long, longer, short) =
            (kernels.buffer(&[0; 8])?, kernels.buffer(&[0; 9])?, kernels.buffer(&[0; 4])?);
        let graph = Graph::new(device);
        let node = graph.launch(&increase, LaunchConfig::linear(8), (&long, 4u32, 1))?;
        let executable = graph.instantiate()?;
        let node = executable.node(&node)?;
        node.set_arg(2, 5i32)?;
        node.set_arg(1, 8u32)?;
        refused(node.set_arg(1, 9u32), ErrorKind::ContractViolation, &["8 elements", "9"]);
        refused(node.set_arg(0, &short), ErrorKind::ContractViolation, &["4 elements", "8"]);
        node.set_arg(0, &longer)?;
        node.set_arg(1, 9u32)?;
        refused(node.set_arg(0, &long), ErrorKind::ContractViolation, &["8 elements", "9"]);
        // Together they fit, in whichever order they are written.
        node.set_args(&increase, (&short, 4u32, 2))?;
        refused(node.set_args(&increase, (&short, 5u32, 2)), ErrorKind::ContractViolation, &["4 elements"]);
        executable.launch(&kernels.stream)?;
        assert_eq!((short.to_vec()?, longer.to_vec()?), (vec![2; 4], vec![0; 9]));
        Ok(())
    });
}
