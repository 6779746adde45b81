//! Accesses to shared memory at distances from thread to thread that are known, or that turn out to
//! make rows: interpreter and compiled code agree, under guards and at the ends of memory too.

use crate::case::{Case, STORE};

/// Fills `tile` with a word of each thread, puts an address into `%rd2`, loads from it, stores to
/// it where a predicate holds, and returns both.
fn body(address: &str, guard: &str) -> String {
    format!(
        "mov.u64 %rd5, tile; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd5, %rd4;
         mad.lo.u32 %r6, %r1, 0x01010101, 7; st.shared.u32 [%rd3], %r6; bar.sync 0;
         {address} mul.wide.u32 %rd4, %r2, 4; add.u64 %rd2, %rd5, %rd4;
         ld.shared.u32 %r7, [%rd2]; bar.sync 0;
         {guard}
         bar.sync 0; ld.shared.u32 %r8, [%rd3]; mad.lo.u32 %r19, %r8, 31, %r7; {STORE}"
    )
}

/// Ways to store: in all threads, where a predicate of the thread holds, in a branch, and in a
/// branch that computes the address again.
const GUARDS: [&str; 4] = [
    "st.shared.u32 [%rd2], %r1;",
    "and.b32 %r9, %r1, 3; setp.ne.u32 %p1, %r9, 2; @%p1 st.shared.u32 [%rd2], %r1;",
    "and.b32 %r9, %r7, 1; setp.eq.u32 %p1, %r9, 0; @%p1 bra OVER; st.shared.u32 [%rd2], %r7;
     st.shared.u32 [%rd2], %r1; OVER:",
    "and.b32 %r9, %r7, 5; setp.gt.u32 %p1, %r9, 3; @%p1 bra OVER; add.u64 %rd6, %rd2, 0;
     ld.shared.u32 %r10, [%rd6]; add.u32 %r10, %r10, 1; st.shared.u32 [%rd6], %r10; OVER:",
];

#[track_caller]
fn agrees(address: &str, guards: &[&str]) {
    for guard in guards {
        let body = body(address, guard);
        let found = Case::new(&body).same();
        assert!(found.is_ok(), "{address} {guard}: {found:?}");
    }
}

#[test]
fn partners_in_butterflies_and_sorting_networks() {
    for distance in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16] {
        agrees(&format!("xor.b32 %r2, %r1, {distance};"), &GUARDS);
    }
    for mask in [0, 1, 3, 7] {
        let address = format!("shl.b32 %r4, %r1, 1; and.b32 %r5, %r1, {mask}; sub.u32 %r2, %r4, %r5;");
        agrees(&address, &GUARDS);
    }
}

#[test]
fn several_threads_at_one_word() {
    for address in [
        "and.b32 %r2, %r1, 1;",
        "and.b32 %r2, %r1, 6;",
        "shr.u32 %r2, %r1, 2; and.b32 %r2, %r2, 1;",
        "or.b32 %r2, %r1, 5; and.b32 %r2, %r2, 15;",
    ] {
        // The last of them is what stays. A sum would depend on their order.
        agrees(address, &GUARDS[..3]);
    }
}

#[test]
fn distances_that_are_known_when_it_runs() {
    // A word of memory, so that no analysis knows it.
    for distance in [1, 2, 4, 8] {
        let uniform =
            format!("ld.global.u32 %r3, [%rd0]; and.b32 %r3, %r3, 0; add.u32 %r3, %r3, {distance};");
        agrees(&format!("{uniform} xor.b32 %r2, %r1, %r3;"), &GUARDS);
        let network =
            "sub.u32 %r5, %r3, 1; and.b32 %r5, %r5, %r1; shl.b32 %r4, %r1, 1; sub.u32 %r2, %r4, %r5;";
        agrees(&format!("{uniform} {network}"), &GUARDS);
    }
}

#[test]
fn a_thread_that_goes_outside_is_a_fault_and_one_that_does_not_go_is_none() {
    let outside = "xor.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 20;";
    for guard in GUARDS {
        assert!(Case::new(&body(outside, guard)).same().is_err(), "{guard}");
    }
    let masked = "mov.u64 %rd5, tile; mov.u32 %r7, 0; ld.global.u32 %r3, [%rd0]; and.b32 %r3, %r3, 0;
         add.u32 %r3, %r3, 4; sub.u32 %r2, %r1, %r3; mul.wide.s32 %rd4, %r2, 4; add.u64 %rd2, %rd5, %rd4;
         mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd5, %rd4; st.shared.u32 [%rd3], %r1; bar.sync 0;
         xor.b32 %r2, %r2, 0; setp.lt.u32 %p1, %r1, %r3; @%p1 bra OVER; ld.shared.u32 %r7, [%rd2]; OVER:
         mov.u32 %r19, %r7;";
    let found = Case::new(&format!("{masked} {STORE}")).same();
    assert!(found.is_ok(), "{found:?}");
}
