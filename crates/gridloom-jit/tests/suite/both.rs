//! Kernels that run in the interpreter and in compiled code: memory and faults must be the same.

use crate::case::{Case, STORE};

#[test]
fn threads_that_part_in_a_loop_come_to_the_right_end() {
    let body = format!(
        "mov.u32 %r19, 0; mov.u32 %r2, 0;
         L: setp.ge.u32 %p1, %r2, %r1; @%p1 bra E;
         mad.lo.u32 %r19, %r19, 31, %r2; add.u32 %r2, %r2, 1; bra L;
         E: {STORE}"
    );
    Case::new(&body).same().unwrap();
    Case { block: [33, 1, 1], ..Case::new(&body) }.same().unwrap();
    Case { block: [12, 5, 1], words: vec![0; 12], ..Case::new(&body) }.same().unwrap();
}

#[test]
fn registers_live_across_barriers_keep_their_values() {
    let body = format!(
        "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; mad.lo.u32 %r5, %r1, 7, 3;
         st.shared.u32 [%r4], %r5; bar.sync 0;
         xor.b32 %r6, %r1, 5; shl.b32 %r7, %r6, 2; add.u32 %r7, %r7, %r2; ld.shared.u32 %r8, [%r7];
         bar.sync 0; st.shared.u32 [%r4], %r8; bar.sync 0;
         ld.shared.u32 %r9, [%r4]; add.u32 %r19, %r9, %r5; {STORE}"
    );
    let found = Case::new(&body).same().unwrap();
    assert_eq!(found[0], 5 * 7 + 3 + 3);
}

#[test]
fn an_index_that_wraps_inside_a_group_is_widened_thread_by_thread() {
    let body = format!(
        "add.u32 %r2, %r0, 0xffffffbc; add.u32 %r2, %r2, %r1; mul.wide.u32 %rd1, %r2, 1; shr.u64 %rd2, %rd1, 30;
         cvt.u32.u64 %r3, %rd2; cvt.u32.u64 %r4, %rd1; add.u32 %r19, %r3, %r4; {STORE}"
    );
    Case::new(&body).same().unwrap();
}

#[test]
fn a_nan_is_the_canonical_one_wherever_it_is_seen() {
    // 0 · ∞, then arithmetic on it, then its bits.
    let body = format!(
        "mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f7F800000; cvt.rn.f32.u32 %f2, %r1;
         mul.f32 %f3, %f0, %f1; fma.rn.f32 %f4, %f3, %f2, %f2; neg.f32 %f5, %f4; max.f32 %f6, %f5, %f4;
         mov.b32 %r19, %f6; {STORE}"
    );
    assert_eq!(Case::new(&body).same().unwrap(), [0x7fff_ffff; 64]);
    let loaded = format!(
        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.f32 %f0, [%rd2]; mov.f32 %f1, %f0;
         mov.b32 %r19, %f1; {STORE}"
    );
    let words = vec![0xffc0_1234; 64];
    assert_eq!(Case { words: words.clone(), ..Case::new(&loaded) }.same().unwrap(), words);
}

#[test]
fn what_was_loaded_before_a_store_to_its_place_is_what_is_computed_with() {
    // Two rows, of which one is written before their sum, and read again twice; the other one is
    // computed with twice.
    let body = format!(
        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; mov.f32 %f2, 0f42280000;
         ld.global.f32 %f0, [%rd2]; ld.global.f32 %f1, [%rd2+256]; st.global.f32 [%rd2], %f2; add.f32 %f3, %f0, %f1;
         ld.global.f32 %f4, [%rd2]; ld.global.f32 %f5, [%rd2+256]; ld.global.f32 %f6, [%rd2];
         mul.f32 %f4, %f4, %f5; sub.f32 %f5, %f5, %f6; fma.rn.f32 %f3, %f3, %f4, %f5;
         mov.b32 %r19, %f3; {STORE}"
    );
    let words: Vec<u32> = (0..128u16).map(|i| f32::from(i).to_bits()).collect();
    let found = Case { words, ..Case::new(&body) }.same().unwrap();
    assert_eq!(f32::from_bits(found[1]), (1.0 + 65.0) * (42.0 * 65.0) + (65.0 - 42.0));
}

#[test]
fn rounding_down_is_exact() {
    let body = format!(
        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.f32 %f0, [%rd2];
         fma.rm.f32 %f1, %f0, 0f3DCCCCCD, %f0; fma.rm.f32 %f2, %f1, 0fBF800000, %f0; fma.rm.f32 %f3, %f0, 0f437C0000, 0f4B400001;
         cvt.sat.f32.f32 %f4, %f0; add.f32 %f5, %f1, %f4;
         mov.b32 %r2, %f1; mov.b32 %r3, %f2; mov.b32 %r4, %f3; mov.b32 %r5, %f5;
         mad.lo.u32 %r6, %r2, 31, %r3; mad.lo.u32 %r7, %r6, 31, %r4; mad.lo.u32 %r19, %r7, 31, %r5; {STORE}"
    );
    let mut words: Vec<u32> = (0..64u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    words[..10].copy_from_slice(&[
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7f7f_ffff,
        0x0080_0000,
        0x3f80_0000,
    ]);
    Case { words, ..Case::new(&body) }.same().unwrap();
}

#[test]
fn a_fault_is_that_of_the_interpreter() {
    let store = "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; st.global.u32 [%rd2], %r1;";
    for pointer in [0, 8, 0x0500_0000_0000_0000] {
        let fault = Case { pointer: Some(pointer), ..Case::new(store) }.same().unwrap_err();
        assert!(fault.contains("outside every live allocation"), "{fault}");
    }
    let odd = "add.u64 %rd1, %rd0, 2; st.global.u32 [%rd1], %r1;";
    assert!(Case::new(odd).same().unwrap_err().contains("not a multiple of 4"));
    let beyond = "mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 32, %r2; st.shared.u32 [%r3], %r1;";
    assert!(Case::new(beyond).same().unwrap_err().contains("shared address 0x400"));
    assert!(
        Case::new("setp.eq.u32 %p1, %r1, 9; @%p1 trap;").same().unwrap_err().contains("thread (9, 0, 0)")
    );
}

#[test]
fn generic_addresses_find_shared_memory() {
    let body = format!(
        "mov.u64 %rd1, tile; cvta.shared.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd4, %rd2, %rd3;
         st.u32 [%rd4+4], %r1; setp.lt.u32 %p1, %r1, 20; add.u64 %rd6, %rd0, 256; selp.u64 %rd5, %rd4, %rd6, %p1;
         ld.u32 %r19, [%rd5+4]; {STORE}"
    );
    Case { words: (500..628).collect(), ..Case::new(&body) }.same().unwrap();
}

#[test]
fn warp_operations_see_what_compiled_code_computed() {
    let body = format!(
        "mul.lo.u32 %r2, %r1, %r1; shfl.sync.bfly.b32 %r3, %r2, 3, 31, 0xffffffff;
         setp.gt.u32 %p1, %r3, 100; vote.sync.ballot.b32 %r4, %p1, 0xffffffff;
         @%p1 add.u32 %r4, %r4, 1; redux.sync.add.u32 %r5, %r4, 0xffffffff; add.u32 %r19, %r5, %r3; {STORE}"
    );
    Case::new(&body).same().unwrap();
}

#[test]
fn a_thread_that_spins_lets_the_one_it_waits_for_run() {
    let body = format!(
        "mov.u32 %r2, tile; setp.eq.u32 %p1, %r1, 63; @%p1 st.shared.u32 [%r2], 7;
         L: ld.volatile.shared.u32 %r19, [%r2]; setp.eq.u32 %p2, %r19, 0; @%p2 bra L;
         {STORE}"
    );
    assert_eq!(Case::new(&body).same().unwrap(), [7; 64]);
}

#[test]
fn guarded_accesses_are_made_where_the_guard_holds() {
    let body = "and.b32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 1; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;
         mov.u32 %r3, 9; @%p1 ld.global.u32 %r3, [%rd2]; add.u32 %r4, %r3, %r1; @!%p1 st.global.u32 [%rd2], %r4;
         @%p1 atom.global.add.u32 %r5, [%rd0], 1;";
    Case { words: (100..164).collect(), ..Case::new(body) }.same().unwrap();
}

#[test]
fn threads_that_part_in_a_later_block_of_a_call_know_their_block() {
    // The group of the last thread parts in the third block, which is run in one call with those
    // before it.
    let body =
        "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
         mad.lo.u32 %r6, %r5, 16, %r1; setp.ge.u32 %p1, %r6, %r0; @%p1 bra E;
         mov.u32 %r7, 0; mov.u32 %r8, %r6;
         L: mad.lo.u32 %r7, %r7, 3, %r8; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 50; @%p2 bra L;
         mul.wide.u32 %rd1, %r6, 4; add.u64 %rd2, %rd0, %rd1; st.global.u32 [%rd2], %r7;
         E:";
    let case = Case { grid: [2, 3, 1], block: [16, 1, 1], words: vec![0; 83], ..Case::new(body) };
    let words = case.same().unwrap();
    assert!(words.iter().all(|&word| word != 0));
}

#[test]
fn blocks_of_one_call_each_start_with_zeros_in_shared_memory() {
    let body = format!(
        "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; ld.shared.u32 %r5, [%r4]; add.u32 %r5, %r5, 1;
         st.shared.u32 [%r4], %r5; bar.sync 0;
         xor.b32 %r6, %r3, 4; add.u32 %r6, %r6, %r2; ld.shared.u32 %r19, [%r6]; {STORE}"
    );
    let words = Case { grid: [5, 1, 1], ..Case::new(&body) }.same().unwrap();
    assert!(words.iter().all(|&word| word == 1));
}

#[test]
fn some_threads_of_a_group_go_a_short_way() {
    // Registers that differ behind it, and that do not; loads and stores; a way that ends at a
    // barrier.
    let body = format!(
        "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; mov.u32 %r19, 5; mov.u32 %r9, 1;
         st.shared.u32 [%r4], %r1; bar.sync 0;
         and.b32 %r5, %r1, 3; setp.ne.u32 %p1, %r5, 2; @%p1 bra A;
         mov.u32 %r6, 40; add.u32 %r7, %r2, %r6; ld.shared.u32 %r8, [%r7]; ld.shared.u32 %r10, [%r4]; mad.lo.u32 %r19, %r8, 100, %r10;
         A: bar.sync 0; setp.gt.u32 %p2, %r1, 21; @%p2 bra B;
         ld.shared.u32 %r11, [%r4+8]; add.u32 %r11, %r11, 1000; st.shared.u32 [%r4+4], %r11;
         B: bar.sync 0; ld.shared.u32 %r12, [%r4]; add.u32 %r19, %r19, %r12; {STORE}"
    );
    Case::new(&body).same().unwrap();
    Case { block: [33, 1, 1], ..Case::new(&body) }.same().unwrap();
}

#[test]
fn a_short_way_on_which_some_threads_fault_says_so() {
    let body = format!(
        "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; setp.lt.u32 %p1, %r1, 13; @%p1 bra A;
         add.u32 %r4, %r4, 4096; st.shared.u32 [%r4], %r1;
         A: mov.u32 %r19, 1; {STORE}"
    );
    Case::new(&body).same().unwrap_err();
}

#[test]
fn a_block_that_loops_through_barriers_lets_the_others_of_its_grid_run() {
    let body = "mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra S;
         L: bar.sync 0; ld.volatile.global.u32 %r3, [%rd0]; setp.eq.u32 %p2, %r3, 0; bar.sync 0; @%p2 bra L;
         bra E;
         S: mov.u32 %r4, 1; st.volatile.global.u32 [%rd0], %r4;
         E:";
    let case = Case { grid: [2, 1, 1], cooperative: true, ..Case::new(body) };
    assert_eq!(case.same().unwrap()[0], 1);
}

#[test]
fn a_short_way_with_addresses_of_32_bits_faults_as_in_the_interpreter() {
    let body = format!(
        "shl.b32 %r3, %r1, 2; mov.u32 %r19, 1; setp.lt.u32 %p1, %r1, 13; @%p1 bra A;
         ld.global.u32 %r5, [%r3]; add.u32 %r19, %r19, %r5;
         A: {STORE}"
    );
    Case::new(&body).same().unwrap_err();
}

#[test]
fn an_address_that_was_checked_on_one_way_is_checked_on_the_other() {
    // All threads go around the first load, or none, or some.
    for bound in [64, 0, 9] {
        let body = format!(
            "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; mov.u32 %r19, 0; setp.lt.u32 %p1, %r1, {bound}; @%p1 bra L;\n\
             ld.global.u32 %r19, [%rd2]; setp.gt.u32 %p2, %r1, 60; @%p2 bra L; ld.global.u32 %r2, [%rd2+4]; add.u32 %r19, %r19, %r2;\n\
             L: ld.global.u32 %r3, [%rd2]; add.u32 %r19, %r19, %r3; bar.sync 0; {STORE}"
        );
        Case { words: (0..64).collect(), ..Case::new(&body) }.same().unwrap();
        for pointer in [4, 1 << 40 | 2] {
            Case { pointer: Some(pointer), ..Case::new(&body) }.same().unwrap_err();
        }
    }
}

#[test]
fn threads_at_a_border_wait_while_the_others_read_their_neighbours() {
    // The middle of the buffer is a row of 48 words; the first and the last thread have no
    // neighbour to read on one side.
    let body = format!(
        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r19, [%rd2]; bar.sync 0;\n\
         setp.lt.u32 %p1, %r1, 1; setp.gt.u32 %p2, %r1, 46; or.pred %p3, %p1, %p2; @%p3 bra L;\n\
         ld.global.u32 %r2, [%rd2+-4]; ld.global.u32 %r3, [%rd2+4]; add.u32 %r4, %r2, %r3; mul.lo.u32 %r5, %r19, 5;\n\
         ld.global.u32 %r6, [%rd2+64]; ld.global.u32 %r7, [%rd2]; add.u32 %r8, %r6, %r7; sub.u32 %r9, %r8, %r5; mad.lo.u32 %r19, %r9, 3, %r4;\n\
         L: bar.sync 0; {STORE}"
    );
    let words = (0..64u32).map(|i| i * i + 1).collect();
    let case = Case { block: [48, 1, 1], words, ..Case::new(&body) };
    let found = case.same().unwrap();
    assert_eq!((found[0], found[47]), (1, 47 * 47 + 1));
    // Addresses that are not aligned fault, in the first thread that goes there.
    Case { pointer: Some(1 << 40 | 2), ..case }.same().unwrap_err();
}

#[test]
fn global_memory_is_accessed_by_the_threads_that_go_a_short_way_and_no_others() {
    // Of a row of words, of pairs, and of doubles backwards; the last of the threads that go are in
    // the middle of a group.
    let accesses = [
        (
            "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd0, %rd1;",
            "ld.global.u32 %r5, [%rd2+16]; add.u32 %r5, %r5, %r1;",
            "st.global.u32 [%rd2+128], %r5;",
        ),
        (
            "mul.wide.u32 %rd1, %r1, 8; add.u64 %rd2, %rd0, %rd1;",
            "ld.global.v2.u32 {%r5, %r6}, [%rd2+8]; add.u32 %r6, %r6, %r5;",
            "st.global.v2.u32 [%rd2+256], {%r6, %r5};",
        ),
        (
            "mul.wide.u32 %rd1, %r1, 8; sub.u64 %rd2, %rd0, %rd1;",
            "ld.global.f64 %d0, [%rd2+248]; add.f64 %d1, %d0, 0d3FF0000000000000;",
            "st.global.f64 [%rd2+504], %d1;",
        ),
    ];
    for (address, load, store) in accesses {
        for threads in [1, 3, 11, 21, 30] {
            let body = format!(
                "{address} mov.u32 %r5, 7; mov.f64 %d0, 0d0000000000000000; setp.ge.u32 %p1, %r1, {threads}; bar.sync 0; @%p1 bra A;
                 {load} {store} A:"
            );
            let words: Vec<u32> = (0..128).map(|i| 0x4000_0000 + i * 0x0001_0203).collect();
            Case { block: [32, 1, 1], words, ..Case::new(&body) }.same().unwrap();
            let behind = format!(
                "{address} mov.u32 %r5, 7; mov.f64 %d0, 0d0000000000000000; setp.ge.u32 %p1, %r1, {threads}; @%p1 bra A;
                 {load} A: bar.sync 0; mov.b64 {{%r7, %r8}}, %d0; add.u32 %r19, %r5, %r8; {STORE}"
            );
            let words: Vec<u32> = (0..128).map(|i| 0x4000_0000 + i * 0x0001_0203).collect();
            Case { block: [32, 1, 1], words, ..Case::new(&behind) }.same().unwrap();
        }
    }
}

#[test]
fn an_address_that_no_thread_of_a_short_way_may_access_is_a_fault_as_in_the_interpreter() {
    let body = "mul.wide.u32 %rd1, %r1, 4; setp.ge.u32 %p1, %r1, 11; mov.u32 %r5, 0; @%p1 bra A;
                ld.global.u32 %r5, [%rd1+64]; add.u32 %r5, %r5, 1; A: st.global.u32 [%rd0], %r5;";
    Case::new(body).same().unwrap_err();
}
