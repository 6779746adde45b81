//! Words of records: each thread has several that lie one behind the other.

use crate::case::{Case, STORE};

/// Compiled code computes what the interpreter does, for threads with records of so many words, at
/// `%rd2`. Results are stored behind the records.
#[track_caller]
fn same(words: u32, body: &str) {
    for threads in [64u32, 48, 33, 20] {
        let count = words * threads + 64;
        let body = format!(
            "mul.lo.u32 %r2, %r1, {words}; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %rd0, %rd1; mov.u32 %r19, 1;
             {body} add.u64 %rd0, %rd0, {}; {STORE}",
            4 * count
        );
        let words = (0..count + threads).map(|word| word.wrapping_mul(0x9e37_79b9)).collect();
        Case { words, block: [threads, 1, 1], ..Case::new(&body) }.same().unwrap();
    }
}

fn load(word: i32) -> String {
    format!("ld.global.u32 %r3, [%rd2+{}]; mad.lo.u32 %r19, %r19, 31, %r3;", 4 * word)
}

#[test]
fn words_are_loaded_in_any_order() {
    for words in [2, 3, 4, 5, 7, 9, 16, 40] {
        for order in [
            vec![0, 1, 2, 3],
            vec![3, 1, 0, 2, 1],
            vec![0, 4, 8, 7, 5, 6, 3, 1, 2],
            vec![1, 2, 3, 5, 6, 7, 8, 9],
            vec![0, 1, 2],
            vec![10, 2, 3, 4, 5, 12, 11, 13],
        ] {
            same(words, &order.into_iter().map(load).collect::<String>());
        }
    }
}

#[test]
fn words_behind_a_store_are_those_that_it_has_left() {
    for store in [
        "st.global.u32 [%rd2+8], %r19;",
        "st.global.u32 [%rd2+4], %r1; bar.sync 0;",
        "atom.global.add.u32 %r4, [%rd2+8], 5;",
        "setp.gt.u32 %p1, %r3, 0x80000000; @%p1 st.global.u32 [%rd2+8], %r1;",
        "setp.gt.u32 %p1, %r3, 0x80000000; @!%p1 bra A; st.global.u32 [%rd2+8], %r1; A:",
    ] {
        let loads = |order: [i32; 4]| order.into_iter().map(load).collect::<String>();
        same(5, &format!("{} {store} {}", loads([0, 1, 2, 3]), loads([3, 2, 1, 0])));
        same(5, &format!("{} {} {store} {}", load(0), load(3), loads([1, 2, 0, 3])));
    }
}

#[test]
fn words_are_loaded_by_threads_whose_guard_holds() {
    let guarded =
        |word: i32| format!("@%p1 ld.global.u32 %r3, [%rd2+{}]; mad.lo.u32 %r19, %r19, 31, %r3;", 4 * word);
    for guard in ["setp.lt.u32 %p1, %r1, 100;", "setp.lt.u32 %p1, %r1, 21;", "setp.gt.u32 %p1, %r1, 99;"] {
        let all: String = [0, 1, 2, 3].map(guarded).concat();
        same(6, &format!("mov.u32 %r3, 5; {guard} {all} {}", [3, 2, 1, 0].map(load).concat()));
        same(6, &format!("mov.u32 %r3, 5; {guard} {} {all}", [3, 2, 1, 0].map(load).concat()));
    }
}

#[test]
fn the_address_of_a_record_may_change_between_its_words() {
    let some = [0, 1].map(load).concat();
    let others = [2, 3].map(load).concat();
    same(6, &format!("{some} add.u64 %rd2, %rd2, 4; {others} {some}"));
}

#[test]
fn words_and_quads_are_loaded_with_what_lies_between_them() {
    for step in [-2, -1, 2, 3, 4, 5] {
        for (size, load) in [
            (4, "ld.global.u32 %r19, [%rd5];"),
            (4, "ld.global.f32 %f1, [%rd5]; mov.b32 %r19, %f1;"),
            (8, "ld.global.u64 %rd6, [%rd5]; shr.u64 %rd7, %rd6, 27; cvt.u32.u64 %r19, %rd7;"),
        ] {
            let start = if step < 0 { -64 * step * size } else { 0 };
            let body = format!(
                "mul.wide.s32 %rd4, %r1, {}; add.u64 %rd5, %rd0, %rd4; add.u64 %rd5, %rd5, {start}; {load}",
                step * size
            );
            same(12, &body);
        }
    }
}
