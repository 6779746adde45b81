//! Nodes that are disabled in one executable.

use gridloom::prelude::*;

use super::changes::{Change, LEN, Lab};
use crate::support::graph_kernels::late_number;
use crate::support::{for_each_device, refused};

/// Long, against the time that nodes take to start.
const LATE_ROUNDS: u32 = 50_000;

#[test]
fn a_disabled_kernel_copy_or_fill_does_nothing_until_it_is_enabled() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let nothing = lab.run(&Graph::new(device).instantiate()?)?;
        for change in [Change::Arguments, Change::FillValue, Change::CopySize, Change::CopyFromHostToDevice] {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?;
            let [executable, other] = [graph.instantiate()?, graph.instantiate()?];
            let held = executable.node(&node)?;
            assert!(held.is_enabled());
            held.set_enabled(false)?;
            held.set_enabled(false)?;
            assert!(!held.is_enabled());
            assert_eq!(lab.run(&executable)?, nothing, "{change:?}, disabled");
            assert_eq!(lab.run(&other)?, change.outcomes()[0], "{change:?}, another executable");
            held.set_enabled(true)?;
            assert_eq!(lab.run(&executable)?, change.outcomes()[0], "{change:?}, enabled again");
        }
        Ok(())
    });
}

#[test]
fn a_disabled_node_takes_changes_and_shows_them_once_enabled() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let nothing = lab.run(&Graph::new(device).instantiate()?)?;
        for change in [Change::Arguments, Change::Function, Change::FillValue, Change::CopySize] {
            let graph = Graph::new(device);
            let node = change.add(&lab, &graph)?;
            let executable = graph.instantiate()?;
            executable.node(&node)?.set_enabled(false)?;
            change.make(&lab, &executable.node(&node)?)?;
            assert!(!executable.node(&node)?.is_enabled(), "{change:?}");
            assert_eq!(lab.run(&executable)?, nothing, "{change:?}, disabled");
            executable.node(&node)?.set_enabled(true)?;
            assert_eq!(lab.run(&executable)?, change.outcomes()[1], "{change:?}, enabled");
        }
        Ok(())
    });
}

#[test]
fn disabled_nodes_stay_so_through_whole_updates() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let node = graph.memset(&lab.x, 1i32)?;
        node.memset(&lab.y, 1i32)?;
        let executable = graph.instantiate()?;
        executable.node(&node)?.set_enabled(false)?;
        let other = Graph::new(device);
        other.memset(&lab.x, 2i32)?.memset(&lab.y, 2i32)?;
        executable.update(&other)?;
        assert!(!executable.node(&node)?.is_enabled());
        let outcome = lab.run(&executable)?;
        assert_eq!((outcome.x, outcome.y), ([1, 2, 3, 4], [2; LEN]));
        executable.node(&node)?.set_enabled(true)?;
        assert_eq!(lab.run(&executable)?.x, [2; LEN]);
        Ok(())
    });
}

#[test]
fn a_disabled_node_keeps_its_place_in_the_order() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let one = LaunchConfig::one();
        let (first, second) = (lab.kernels.value(1)?, lab.kernels.value(2)?);
        let out = lab.kernels.value(0)?;
        // 31 * out + x: the result tells the order, which the node between makes.
        let start = graph.launch(&lab.kernels.mix, one, (&out, &first, 1))?;
        let between = start.memset(&lab.x, 9i32)?;
        between.launch(&lab.kernels.mix, one, (&out, &second, 1))?;
        let executable = graph.instantiate()?;
        executable.node(&between)?.set_enabled(false)?;
        for _ in 0..20 {
            out.write(&[0])?;
            assert_eq!(lab.run(&executable)?.x, [1, 2, 3, 4]);
            assert_eq!(out.to_vec()?, [33]);
        }
        Ok(())
    });
}

#[test]
fn what_comes_after_a_disabled_node_waits_for_what_comes_before_it() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let [first, last] = [lab.kernels.value(0)?, lab.kernels.value(0)?];
        let (one, number) = (LaunchConfig::one(), late_number(LATE_ROUNDS));
        let mut wrong = Vec::new();
        for before in ["kernel", "loop"] {
            for between in ["kernel", "fill", "fill of rows", "copy", "copy from the host"] {
                for after in ["kernel", "fill", "copy", "choice"] {
                    let graph = Graph::new(device);
                    let node = if before == "kernel" {
                        graph.launch(&lab.kernels.late, one, (&first, LATE_ROUNDS))?
                    } else {
                        let repeat = graph.repeat(1)?;
                        repeat.body().launch(&lab.kernels.late, one, (&first, LATE_ROUNDS))?;
                        (*repeat).clone()
                    };
                    let disabled = match between {
                        "kernel" => node.launch(&lab.kernels.increase, one, (&lab.x, 4, 1))?,
                        "fill" => node.memset(&lab.x, 9i32)?,
                        "fill of rows" => node.memset_2d(lab.x.rows(2)?, 9i32, 1, 2)?,
                        "copy" => node.memcpy(&lab.x, &lab.y)?,
                        _ => node.memcpy(&lab.x, &vec![9; LEN])?,
                    };
                    let expected = match after {
                        "kernel" => {
                            disabled.launch(&lab.kernels.affine, one, (&last, &first, 1, 1, 1))?;
                            [number, number.wrapping_add(1)]
                        }
                        "fill" => {
                            disabled.memset(&first, 7i32)?;
                            [7, -1]
                        }
                        "copy" => {
                            disabled.memcpy(&last, &first)?;
                            [number, number]
                        }
                        _ => {
                            disabled.if_nonzero(&first)?.body().memset(&last, 5i32)?;
                            [number, 5]
                        }
                    };
                    let executable = graph.instantiate()?;
                    executable.node(&disabled)?.set_enabled(false)?;
                    for _ in 0..3 {
                        first.write(&[0])?;
                        last.write(&[-1])?;
                        let untouched = lab.run(&executable)?.x == [1, 2, 3, 4];
                        let found = [first.to_vec()?[0], last.to_vec()?[0]];
                        if !untouched || found != expected {
                            wrong.push(format!("{before}, {between}, {after}: {found:?}, not {expected:?}"));
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        Ok(())
    });
}

#[test]
fn nodes_in_bodies_and_children_can_be_disabled() {
    for_each_device(|device| {
        let lab = Lab::new(device)?;
        let graph = Graph::new(device);
        let repeat = graph.repeat(3)?;
        let inside = lab.kernels.bump(&repeat.body(), &lab.x.slice(..1)?, 1)?;
        let inner = Graph::new(device);
        inner.memset(&lab.y, 5i32)?;
        let child = graph.embed(&inner)?;
        let embedded = child.bodies()?[0].nodes().remove(0);
        let executable = graph.instantiate()?;
        for node in [&inside, &embedded] {
            executable.node(node)?.set_enabled(false)?;
        }
        let outcome = lab.run(&executable)?;
        assert_eq!((outcome.x[0], outcome.y[0]), (1, 10));
        for node in [&inside, &embedded] {
            executable.node(node)?.set_enabled(true)?;
        }
        let outcome = lab.run(&executable)?;
        assert_eq!((outcome.x[0], outcome.y[0]), (4, 5));
        Ok(())
    });
}

#[test]
fn only_kernels_copies_and_fills_can_be_disabled() {
    for_each_device(|device| {
        let graph = Graph::new(device);
        let event = device.event()?;
        let nodes = [
            graph.empty()?,
            graph.callback(|| ())?,
            graph.record(&event)?,
            graph.wait(&event)?,
            (*graph.repeat(1)?).clone(),
            graph.embed(&Graph::new(device))?,
            (*graph.alloc::<i32>(1)?).clone(),
        ];
        let executable = graph.instantiate()?;
        for node in nodes {
            let says = [node.label(), "only kernels, copies and fills".to_owned()];
            let says: Vec<&str> = says.iter().map(String::as_str).collect();
            refused(executable.node(&node)?.set_enabled(false), ErrorKind::InvalidArgument, &says);
        }
        Ok(())
    });
}
