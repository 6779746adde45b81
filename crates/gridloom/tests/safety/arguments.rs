//! Arguments that no careful program passes: sizes near the largest number, operations made by
//! hand, sources and iterators of the user that lie, panic or call back in. Each is an error or
//! works.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gridloom::buffer::CopySource;
use gridloom::op::{AllocOp, ConditionalForm, MemcpyOp, MemsetOp, Operation, Test};
use gridloom::prelude::*;
use gridloom::{Base, Region};

use crate::support::{GraphKernels, for_each_device};

const LARGE: [usize; 6] = [usize::MAX, usize::MAX / 2, usize::MAX / 4, usize::MAX / 4 + 1, 1 << 33, 1 << 31];

#[test]
fn extents_and_pitches_near_the_largest_number_are_refused() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let (x, y) = (device.buffer_from(&[1u32; 64])?, device.buffer_from(&[2u32; 64])?);
        for large in LARGE {
            for small in [1, 2, 8] {
                for [pitch, width, height] in
                    [[large, small, small + 1], [small, large, 2], [small, 1, large]]
                {
                    assert!(stream.memset_2d(x.rows(pitch)?, 3u8, width, height).is_err());
                    let copy = stream.memcpy_2d(x.rows(pitch)?, y.rows(pitch)?, width, height);
                    assert!(copy.is_err(), "{pitch} {width} {height}");
                    let sides = (x.planes(pitch, large)?, y.planes(8, large)?);
                    assert!(stream.memcpy_3d(sides.0, sides.1, [width, height, 2]).is_err());
                }
            }
            if large > 1 << 40 {
                assert!(device.alloc::<u32>(large).is_err());
            }
        }
        stream.synchronize()?;
        assert_eq!((x.to_vec()?, y.to_vec()?), (vec![1; 64], vec![2; 64]));
        Ok(())
    });
}

/// A source of copies that says what it likes.
struct Liar(Region, usize);

impl CopySource<u32> for Liar {
    fn source(&self) -> Result<(Region, usize)> {
        Ok((self.0.clone(), self.1))
    }
}

#[test]
fn regions_that_reach_past_their_memory_are_refused_wherever_they_come_from() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let (x, y) = (device.buffer_from(&[1u32; 4])?, device.buffer_from(&[2u32; 4])?);
        let bytes = Region::from_bytes(vec![3u8; 16]);
        for base in [y.region()?.base, bytes.base] {
            for (offset, bytes) in
                [(0, 17), (16, 1), (u64::MAX, 1), (1, u64::MAX), (u64::MAX - 15, 16), (1 << 63, 16)]
            {
                let region = Region { base: base.clone(), offset, bytes };
                assert!(stream.memcpy(&x, &Liar(region.clone(), 4)).is_err());
                assert!(graph.memcpy(&x, &Liar(region.clone(), 4)).is_err());
                let copy = MemcpyOp::linear(x.region()?, region.clone(), 16);
                assert!(stream.submit(Operation::Memcpy(Arc::new(copy))).is_err());
                let fill = MemsetOp { dst: region, value: 9, element_size: 1, width: 1, height: 1, pitch: 0 };
                assert!(graph.submit(Operation::Memset(Arc::new(fill))).is_err());
            }
        }
        // More elements than there are bytes.
        assert!(stream.memcpy(&x, &Liar(y.slice(0..1)?.region()?, 4)).is_ok(), "one element is copied");
        assert!(stream.memcpy(&x.slice(0..1)?, &Liar(y.region()?, 1)).is_err());
        stream.synchronize()?;
        assert_eq!(x.to_vec()?, [2, 1, 1, 1]);
        Ok(())
    });
}

#[test]
fn conditionals_and_allocations_cannot_be_made_or_changed_by_hand() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let (one, pair) = (kernels.value(1)?, kernels.buffer(&[1, 1])?);
        let graph = Graph::new(device);
        let conditionals = [
            Node::from(graph.repeat(3)?),
            graph.while_nonzero(&one)?.max_passes(3)?.into(),
            graph.switch_on(&one, 3)?.into(),
        ];
        let memory = graph.alloc::<i32>(4)?;
        memory.memset(&memory, 1u32)?.free(&memory)?;
        let executable = graph.instantiate()?;
        for node in &conditionals {
            let Operation::Conditional(there) = node.operation()? else { panic!("a conditional") };
            for form in [
                ConditionalForm::If,
                ConditionalForm::IfElse,
                ConditionalForm::While,
                ConditionalForm::Switch,
            ] {
                let wrong = Test::Value(Region { bytes: 3, ..one.region()? });
                let unaligned = Test::Value(Region { offset: 2, bytes: 4, ..pair.region()? });
                for test in [Test::Count(5), wrong, unaligned, Test::Value(Region::from_bytes(vec![0u8; 4]))]
                {
                    for bodies in [0, 1, 2, 5] {
                        let mut changed = (*there).clone();
                        (changed.form, changed.test) = (form, test.clone());
                        changed.bodies = std::iter::repeat_n(there.bodies[0], bodies).collect();
                        let changed = Operation::Conditional(Arc::new(changed));
                        assert!(graph.submit(changed.clone()).is_err());
                        let is_same = form == there.form && bodies == there.bodies.len();
                        if !is_same || !matches!((&there.test, &test), (Test::Count(_), Test::Count(_))) {
                            assert!(node.set_operation(changed.clone()).is_err());
                            assert!(executable.node(node)?.set_operation(changed).is_err());
                        }
                    }
                }
            }
        }
        for (len, element_size) in [(0, 4), (4, 0), (u64::MAX, 4), (u64::MAX, u32::MAX), (2, 4)] {
            let op = AllocOp { len, element_size, kind: MemoryKind::Device, peers: Default::default() };
            let alloc = Operation::Alloc(Arc::new(op));
            assert!(memory.set_operation(alloc.clone()).is_err());
            assert!(executable.node(&memory)?.set_operation(alloc.clone()).is_err());
            assert_eq!(graph.submit(alloc).is_ok(), len == 2);
        }
        assert!(graph.submit(Operation::Child(graph.key())).is_err());
        let Base::Allocation(buffer) = one.region()?.base else { panic!("a buffer") };
        assert!(graph.submit(Operation::Free(gridloom::op::FreeTarget::Outliving(buffer))).is_err());
        Ok(())
    });
}

/// An iterator that does something before each item.
struct Before<'a, T, F>(std::vec::IntoIter<&'a T>, F);

impl<'a, T, F: FnMut()> Iterator for Before<'a, T, F> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        (self.1)();
        self.0.next()
    }
}

fn before<T>(items: &[T], call: impl FnMut()) -> impl Iterator<Item = &T> {
    Before(items.iter().collect::<Vec<_>>().into_iter(), call)
}

#[test]
fn iterators_may_use_the_graph_and_capture_that_they_are_given_to() {
    for_each_device(|device| {
        let stream = device.stream()?;
        let graph = Graph::new(device);
        let nodes = (0..3).map(|_| graph.empty()).collect::<Result<Vec<_>>>()?;
        let joined = graph.join(before(&nodes, || drop((graph.empty().unwrap(), graph.to_json()))))?;
        assert_eq!(joined.predecessors()?.len(), 3);
        graph.empty()?.after(before(&nodes, || drop(graph.deep_clone().unwrap())))?;
        let deletes = || drop(nodes[2].delete());
        assert!(graph.join(before(&nodes, deletes)).is_err());
        let capture = stream.capture()?;
        let forks = capture.fork(3)?;
        capture.join(before(&forks, || drop((capture.state(), capture.empty().unwrap()))))?;
        capture.end()?;
        Ok(())
    });
}

#[test]
fn iterators_that_panic_change_nothing() {
    for_each_device(|device| {
        let kernels = GraphKernels::new(device)?;
        let value = kernels.value(1)?;
        let graph = Graph::new(device);
        let nodes = (2..5).map(|value_of| graph.memset(&value, value_of)).collect::<Result<Vec<Node>>>()?;
        let executable = graph.instantiate()?;
        let edges = graph.edges().len();
        for stop in 0..3 {
            let items = || nodes.iter().enumerate().map(move |(index, node)| (assert!(index < stop), node).1);
            let other = nodes[2].operation()?;
            let panics = |work: &dyn Fn() -> Result<()>| catch_unwind(AssertUnwindSafe(work)).is_err();
            assert!(panics(&|| graph.join(items()).map(drop)));
            assert!(panics(&|| nodes[0].after(items())));
            assert!(panics(&|| executable.set_operations(items().map(|node| (node, other.clone())))));
        }
        assert_eq!((graph.len(), graph.edges().len()), (3, edges));
        for node in &nodes {
            assert!(node.operation()?.same(&executable.node(node)?.operation()));
        }
        Ok(())
    });
}
