//! Each parameter of each kind of node, in definitions and in executables.

use gridloom::prelude::*;

use super::changes::{ALL, Lab};
use crate::support::{for_each_device, refused};

#[test]
fn a_change_of_a_definition_affects_later_instantiations_only() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?;
            let [before, after] = change.outcomes();
            let earlier = graph.instantiate()?;
            change.make(&lab, &node)?;
            let later = graph.instantiate()?;
            assert_eq!(lab.run(&later)?, after, "{change:?}, later");
            assert_eq!(lab.run(&earlier)?, before, "{change:?}, earlier");
        }
        Ok(())
    });
}

#[test]
fn a_change_of_an_executable_affects_that_executable_only() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?;
            let [before, after] = change.outcomes();
            let [changed, other] = [graph.instantiate()?, graph.instantiate()?];
            assert_eq!(lab.run(&changed)?, before, "{change:?}, before");
            change.make(&lab, &changed.node(&node)?)?;
            assert_eq!(lab.run(&changed)?, after, "{change:?}, changed");
            assert_eq!(lab.run(&changed)?, after, "{change:?}, launched again");
            assert_eq!(lab.run(&other)?, before, "{change:?}, another executable");
            assert_eq!(lab.run(&graph.instantiate()?)?, before, "{change:?}, the definition");
        }
        Ok(())
    });
}

#[test]
fn an_executable_reads_back_what_it_now_holds() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?;
            let executable = graph.instantiate()?;
            let held = executable.node(&node)?;
            assert!(held.operation().same(&node.operation()?), "{change:?}");
            change.make(&lab, &held)?;
            assert!(!held.operation().same(&node.operation()?), "{change:?}");
            node.set_operation(held.operation())?;
            assert!(held.operation().same(&node.operation()?), "{change:?}");
        }
        Ok(())
    });
}

#[test]
fn a_deleted_node_refuses_every_change() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        for change in ALL {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?;
            let earlier = graph.instantiate()?;
            node.delete()?;
            refused(change.make(&lab, &node), ErrorKind::InvalidHandle, &[]);
            let later = graph.instantiate()?;
            refused(later.node(&node).map(drop), ErrorKind::InvalidHandle, &["deleted before"]);
            // The executable that was made before still has the node, and it can still be changed
            // there.
            change.make(&lab, &earlier.node(&node)?)?;
            assert_eq!(lab.run(&earlier)?, change.outcomes()[1], "{change:?}");
        }
        Ok(())
    });
}

#[test]
fn a_node_can_be_changed_any_number_of_times() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let node = graph.memset(&lab.x, 0i32)?;
        let executable = graph.instantiate()?;
        for value in 0..50 {
            executable.node(&node)?.set_memset(&lab.x, value)?;
            if value % 7 == 0 {
                assert_eq!(lab.run(&executable)?.x, [value; 4]);
            }
        }
        assert_eq!(lab.run(&executable)?.x, [49; 4]);
        Ok(())
    });
}

#[test]
fn several_nodes_change_together() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let (first, second) = (graph.memset(&lab.x, 1i32)?, graph.memset(&lab.y, 1i32)?);
        let executable = graph.instantiate()?;
        let other = Graph::new(device);
        let [five, six] =
            [other.memset(&lab.x, 5i32)?.operation()?, other.memset(&lab.y, 6i32)?.operation()?];
        executable.set_operations([(&first, five), (&second, six)])?;
        let outcome = lab.run(&executable)?;
        assert_eq!((outcome.x, outcome.y), ([5; 4], [6; 4]));
        Ok(())
    });
}
