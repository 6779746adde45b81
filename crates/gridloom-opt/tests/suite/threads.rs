//! Kernels in a row whose threads need only what they wrote themselves.

use std::sync::Arc;

use gridloom_core::Graph;
use gridloom_core::backend::Allocation;
use gridloom_core::launch::LaunchConfig;
use gridloom_core::memory::Region;
use gridloom_core::op::{ArgValue, Operation, PointerValue};
use gridloom_opt::rewrite::{Accesses, Pointee};
use gridloom_opt::{Optimization, Optimizations};

use crate::common::source;
use crate::graphs::{Kernels, only, optimized, pointer, value};

/// Returns the accesses of a kernel with this body and two pointers, `a` in `%a` and `b` in `%b`,
/// in 4 blocks of 64 threads. `%i` is the index of the thread.
fn accesses(body: &str) -> Option<Accesses> {
    let text = format!(
        ".version 7.0 .target sm_70 .address_size 64
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {{
         .reg .pred %p; .reg .b32 %i, %n, %t, %c, %v, %w; .reg .b64 %a, %b, %o, %x, %y;
         ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u32 %n, [n];
         mov.u32 %t, %ntid.x; mov.u32 %c, %ctaid.x; mov.u32 %i, %tid.x;
         mad.lo.s32 %w, %c, %t, %i;
         {body}
         }}"
    );
    Accesses::of(&source(&text, "k"), 4, 64)
}

/// Reads `b[i]` and writes `a[i]`, four bytes each.
const EACH: &str = "mul.wide.u32 %o, %w, 4; add.s64 %x, %b, %o; ld.global.nc.u32 %v, [%x];
    add.s64 %y, %a, %o; st.global.u32 [%y], %v; ret;";

/// Memory of 4,096 bytes each, and the third with the given distance from the first.
fn memory(at: u64) -> impl Fn(u64) -> Option<Pointee> {
    move |parameter| {
        let start = if parameter == 0 { at & !0xffff } else { 0x90_0000 };
        let address = if parameter == 0 { at } else { start };
        (parameter < 16).then_some(Pointee { address, start, end: start + 0x1000 })
    }
}

fn allowed(one: &str, other: &str, distance: u64) -> bool {
    let (one, other) = (accesses(one).unwrap(), accesses(other).unwrap());
    one.allow(&other, &memory(0x10_0000), &memory(0x10_0000 + distance))
}

#[test]
fn kernels_that_touch_the_same_element_in_the_same_thread_need_no_order() {
    assert!(allowed(EACH, EACH, 0));
    // Other memory altogether.
    assert!(allowed(EACH, EACH, 0x10_0000));
    // Two words for each thread, read as one vector and written one by one.
    let pairs =
        "mul.wide.u32 %o, %w, 8; add.s64 %x, %a, %o; st.global.u32 [%x], %v; st.global.u32 [%x+4], %v; ret;";
    let vector = "shl.b32 %w, %w, 1; mul.wide.s32 %o, %w, 4; add.s64 %x, %a, %o; ld.global.v2.u32 {%v, %w}, [%x]; ret;";
    assert!(allowed(pairs, vector, 0));
    // The index in 64 bits, and a guard.
    let wide = "setp.ge.u32 %p, %w, %n; @%p ret; cvt.u64.u32 %o, %w; shl.b64 %o, %o, 2; add.s64 %x, %a, %o;
        st.global.u32 [%x], 1; ret;";
    assert!(allowed(EACH, wide, 0) && allowed(wide, EACH, 0));
}

#[test]
fn an_element_of_another_thread_needs_an_order() {
    assert!(!allowed(EACH, EACH, 4));
    assert!(!allowed(EACH, EACH, 2));
    for other in [
        // The next element, one element for all, another stride, an index from memory, any address.
        "add.s32 %w, %w, 1; mul.wide.u32 %o, %w, 4; add.s64 %x, %a, %o; ld.global.u32 %v, [%x]; ret;",
        "ld.global.u32 %v, [%a]; ret;",
        "mul.wide.u32 %o, %w, 8; add.s64 %x, %a, %o; ld.global.u32 %v, [%x]; ret;",
        "mul.wide.u32 %o, %w, 4; add.s64 %x, %b, %o; ld.global.u32 %v, [%x]; mul.wide.u32 %o, %v, 4;
            add.s64 %x, %a, %o; ld.global.u32 %v, [%x]; ret;",
        "ld.global.u64 %x, [%b]; st.global.u32 [%x], 1; ret;",
        "mul.wide.u32 %o, %i, 4; add.s64 %x, %a, %o; st.global.u32 [%x], 1; ret;",
        // More than the distance of two threads.
        "mul.wide.u32 %o, %w, 4; add.s64 %x, %a, %o; ld.global.u64 %y, [%x]; ret;",
        // A step through memory, and a number that wraps around.
        "again: mul.wide.u32 %o, %w, 4; add.s64 %x, %a, %o; st.global.u32 [%x], 1; add.s32 %w, %w, 7;
            setp.lt.u32 %p, %w, %n; @%p bra again; ret;",
        "sub.s32 %w, %w, 1; mul.wide.u32 %o, %w, 4; add.s64 %x, %a, %o; ld.global.u32 %v, [%x+4]; ret;",
        "mul.wide.u32 %o, %w, 4; add.s64 %x, %a, %o; atom.global.add.u32 %v, [%x+4], 1; ret;",
    ] {
        assert!(!allowed(EACH, other, 0), "{other}");
        assert!(!allowed(other, EACH, 0), "{other}");
    }
}

#[test]
fn a_pointer_that_is_no_known_memory_needs_an_order() {
    let each = accesses(EACH).unwrap();
    assert!(!each.allow(&each, &memory(0x10_0000), &|_| None));
}

#[test]
fn reading_the_same_element_needs_no_order() {
    let read =
        "ld.global.u32 %v, [%b]; mul.wide.u32 %o, %w, 4; add.s64 %x, %a, %o; st.global.u32 [%x], %v; ret;";
    assert!(allowed(read, read, 0));
}

fn part(memory: &Arc<dyn Allocation>, words: u64) -> ArgValue {
    let region =
        Region { offset: 4 * words, bytes: memory.bytes() - 4 * words, ..Region::whole(memory.clone()) };
    ArgValue::Pointer(PointerValue::Region(region))
}

#[test]
fn a_chain_of_large_kernels_over_their_own_elements_is_one_kernel() {
    for kernels in Kernels::all() {
        let x = kernels.words(&(0..600).collect::<Vec<_>>());
        let graph = Graph::new(&kernels.device);
        let mut last = graph.add(&[], kernels.mix(&x, 1, 9, 64)).unwrap();
        for by in 2..6 {
            last = last.add(kernels.mix(&x, by, 9, 64)).unwrap();
        }
        let plain = graph.instantiate().unwrap();
        kernels.run(&plain);
        let expected = kernels.read(&x);
        kernels.device.write(&*x, 0, &(0..600u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        let executable = optimized(&graph, only(Optimization::Chains));
        let report = executable.report().optimized.join("\n");
        assert!(report.contains("5 steps of each thread by itself"), "{report}");
        kernels.run(&executable);
        assert_eq!(kernels.read(&x), expected);
    }
}

#[test]
fn other_memory_that_overlaps_brings_the_order_back() {
    for kernels in Kernels::all() {
        let (x, y) = (kernels.words(&[5; 300]), kernels.words(&[7; 300]));
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 4, 64)).unwrap();
        let second = first.add(kernels.mix(&y, 2, 4, 64)).unwrap();
        let (plain, executable) =
            (graph.instantiate().unwrap(), optimized(&graph, Optimizations::of(&[Optimization::Chains])));
        assert_eq!(executable.optimized_graph().unwrap().unwrap().len(), 1);
        // The second kernel now changes the elements of the first one, one further.
        let config = LaunchConfig::new(4u32, 64u32);
        let shifted: Operation = kernels.launch("mix", config, vec![part(&x, 1), value(2)]);
        let same = kernels.launch("mix", config, vec![pointer(&x), value(3)]);
        for memory in [shifted, same] {
            let mut left = Vec::new();
            for executable in [&plain, &executable] {
                for memory in [&x, &y] {
                    kernels.device.write(&**memory, 0, &[3; 1200]).unwrap();
                }
                executable.set_operations([(&second, memory.clone())]).unwrap();
                kernels.run(executable);
                left.push((kernels.read(&x), kernels.read(&y)));
            }
            assert_eq!(left[0], left[1]);
            assert_eq!(executable.optimized_graph().unwrap().unwrap().len(), 2);
        }
    }
}

#[test]
fn a_single_pointer_that_changes_to_overlapping_memory_brings_the_order_back() {
    for kernels in Kernels::all() {
        let (x, y) = (kernels.words(&[5; 300]), kernels.words(&[7; 300]));
        let graph = Graph::new(&kernels.device);
        let first = graph.add(&[], kernels.mix(&x, 1, 4, 64)).unwrap();
        let second = first.add(kernels.mix(&y, 2, 4, 64)).unwrap();
        let (plain, executable) =
            (graph.instantiate().unwrap(), optimized(&graph, only(Optimization::Chains)));
        let words: Vec<u8> = (0..300u32).flat_map(u32::to_le_bytes).collect();
        // A number, which changes in place, then the pointer, twice.
        for (index, argument, nodes) in
            [(1, value(9), 1), (1, value(4), 1), (0, part(&x, 1), 2), (0, part(&x, 2), 2)]
        {
            let mut left = Vec::new();
            for executable in [&plain, &executable] {
                kernels.device.write(&*x, 0, &words).unwrap();
                kernels.device.write(&*y, 0, &words).unwrap();
                // SAFETY: the kernel takes any number, and the memory has 298 words from there on.
                executable
                    .change(|changes| unsafe { changes.argument(second.key(), index, &argument) })
                    .unwrap();
                kernels.run(executable);
                left.push((kernels.read(&x), kernels.read(&y)));
            }
            assert_eq!(left[0], left[1]);
            assert_eq!(executable.optimized_graph().unwrap().unwrap().len(), nodes);
        }
    }
}

#[test]
fn kernels_with_fewer_blocks_join_those_with_more() {
    for kernels in Kernels::all() {
        let (x, y) = (kernels.words(&[5; 600]), kernels.words(&[7; 600]));
        let graph = Graph::new(&kernels.device);
        let steps = [(&x, 9), (&y, 2), (&x, 1), (&y, 5), (&x, 9)];
        let mut last = graph.add(&[], kernels.mix(&x, 1, 7, 64)).unwrap();
        for (by, (data, blocks)) in steps.into_iter().enumerate() {
            last = last.add(kernels.mix(data, by as u32 + 2, blocks, 64)).unwrap();
        }
        let plain = graph.instantiate().unwrap();
        kernels.run(&plain);
        let expected = [kernels.read(&x), kernels.read(&y)];
        for (memory, word) in [(&x, 5u32), (&y, 7)] {
            kernels.device.write(&**memory, 0, &word.to_le_bytes().repeat(600)).unwrap();
        }
        let executable = optimized(&graph, only(Optimization::Chains));
        let report = executable.report().optimized.join("\n");
        assert!(report.contains("6 steps of each thread by itself"), "{report}");
        kernels.run(&executable);
        assert_eq!([kernels.read(&x), kernels.read(&y)], expected);
    }
}
