//! Loops that make several passes between two tests leave what they left before.

use gridloom_opt::rewrite::{Prefix, prefixed};

use crate::common::{buffer, devices, kernel, launch, read, source};

/// Elements that a loop reads.
const ELEMENTS: u32 = 256;

/// Returns a kernel whose threads each start a loop at `first[i]` and end it by `last[i]`. The loop
/// reads `data` at the low bits of the counter. It leaves the counter, the number of passes and a
/// sum that depends on their order.
fn module(size: u32, step: &str, test: &str) -> String {
    let wide = size == 8;
    let (ty, to_wide) = if wide { ("b64", "mov.b64 %x, %c;") } else { ("b32", "cvt.u64.u32 %x, %c;") };
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n
         .visible .entry k(.param .u64 data, .param .u64 first, .param .u64 last, .param .u64 out) {{
         .reg .pred %p; .reg .b32 %i, %v, %sum, %n; .reg .{ty} %c, %end;
         .reg .b64 %d, %f, %l, %o, %x, %y;
         ld.param.u64 %d, [data]; ld.param.u64 %f, [first]; ld.param.u64 %l, [last]; ld.param.u64 %o, [out];
         mov.u32 %i, %tid.x;
         mul.wide.u32 %x, %i, {size}; add.s64 %f, %f, %x; add.s64 %l, %l, %x;
         mul.wide.u32 %x, %i, 16; add.s64 %o, %o, %x;
         ld.global.{ty} %c, [%f]; ld.global.{ty} %end, [%l];
         mov.u32 %sum, 1; mov.u32 %n, 0;
         $again:
         {to_wide}
         and.b64 %x, %x, {last_element}; shl.b64 %x, %x, 2; add.s64 %y, %d, %x;
         ld.global.u32 %v, [%y];
         mad.lo.u32 %sum, %sum, 31, %v;
         add.u32 %n, %n, 1;
         {step}
         {test}
         @%p bra $again;
         st.global.u32 [%o], %sum; st.global.u32 [%o+4], %n; st.global.{ty} [%o+8], %c;
         ret;
         }}\n",
        last_element = ELEMENTS - 1,
    )
}

/// Runs a loop for many starts and ends, as it is and unrolled. Returns whether it was unrolled.
fn is_unrolled(size: u32, (step, test): (&str, &str), ranges: &[(i64, i64)]) -> bool {
    let text = module(size, step, test);
    let original = source(&text, "k");
    let prefix = Prefix { unroll: true, ..Prefix::default() };
    let rewritten = prefixed(&original, &prefix).unwrap().to_string();
    let bytes = |value: i64| match size {
        8 => value.to_le_bytes().to_vec(),
        _ => (value as i32).to_le_bytes().to_vec(),
    };
    let first: Vec<u8> = ranges.iter().flat_map(|&(first, _)| bytes(first)).collect();
    let last: Vec<u8> = ranges.iter().flat_map(|&(_, last)| bytes(last)).collect();
    let data: Vec<u8> = (0..ELEMENTS).flat_map(|i| (i * i + 7).to_le_bytes()).collect();
    for device in devices() {
        let run = |text: &str| {
            let out = buffer(&device, &vec![0; 16 * ranges.len()]);
            let inputs = [&data, &first, &last].map(|bytes| buffer(&device, bytes));
            let addresses = inputs.iter().chain([&out]).map(|memory| memory.address());
            let args: Vec<u8> = addresses.flat_map(u64::to_le_bytes).collect();
            let kernel = kernel(&device, text, "k").unwrap();
            launch(&device, &kernel, ([1; 3], [ranges.len() as u32, 1, 1], 0), &args).unwrap();
            read(&device, &out)
        };
        assert_eq!(run(&rewritten), run(&text), "{step} {test}\n{rewritten}");
    }
    rewritten.matches("ld.global.u32").count() > 1
}

/// Ranges of 0 to 70 steps up from several places.
fn up(step: i64, places: &[i64]) -> Vec<(i64, i64)> {
    let ends = |&place: &i64| (-2..70).map(move |count| (place, place + count * step + count % 3));
    places.iter().flat_map(ends).collect()
}

#[test]
fn a_loop_that_counts_up_or_down_reads_the_same() {
    const FAR: i64 = i32::MAX as i64 - 300;
    for (step, test) in [
        ("add.s32 %c, %c, 1;", "setp.lt.s32 %p, %c, %end;"),
        ("add.s32 %c, 1, %c;", "setp.le.s32 %p, %c, %end;"),
        ("add.u32 %c, %c, 1;", "setp.lt.u32 %p, %c, %end;"),
        ("add.u32 %c, %c, 1;", "setp.lo.u32 %p, %c, %end;"),
        ("sub.u32 %c, %c, -1;", "setp.ls.u32 %p, %c, %end;"),
    ] {
        assert!(is_unrolled(4, (step, test), &up(1, &[10, 15, -140, FAR])[..200]), "{step} {test}");
        assert!(is_unrolled(4, (step, test), &up(1, &[-140, FAR, 10, 15])[..200]), "{step} {test}");
    }
    let by_five = ("add.s32 %c, %c, 5;", "setp.lt.s32 %p, %c, %end;");
    assert!(is_unrolled(4, by_five, &up(5, &[0, -170, i64::from(i32::MIN) + 20])));
    let down: Vec<(i64, i64)> =
        up(3, &[0, 100, 1000]).into_iter().map(|(one, other)| (-one, -other)).collect();
    for (step, test) in [
        ("add.s32 %c, %c, -3;", "setp.gt.s32 %p, %c, %end;"),
        ("sub.s32 %c, %c, 3;", "setp.ge.s32 %p, %c, %end;"),
    ] {
        assert!(is_unrolled(4, (step, test), &down), "{step} {test}");
    }
    let unsigned: Vec<(i64, i64)> = down.iter().map(|&(one, other)| (one + 5000, other + 5000)).collect();
    for test in ["setp.gt.u32 %p, %c, %end;", "setp.hi.u32 %p, %c, %end;", "setp.hs.u32 %p, %c, %end;"] {
        assert!(is_unrolled(4, ("add.s32 %c, %c, -3;", test), &unsigned), "{test}");
    }
}

#[test]
fn a_loop_until_two_numbers_are_equal_reads_the_same() {
    let exact = |step: i64| -> Vec<(i64, i64)> {
        (1..70).flat_map(|count| [(7, 7 + count * step), (-9, -9 + count * step)]).collect()
    };
    for (by, step) in [("4", 4), ("-4", -4), ("1", 1)] {
        let add = format!("add.s32 %c, %c, {by};");
        assert!(is_unrolled(4, (&add, "setp.ne.s32 %p, %c, %end;"), &exact(step)), "{add}");
        let add = format!("add.s64 %c, %c, {by};");
        assert!(is_unrolled(8, (&add, "setp.ne.s64 %p, %c, %end;"), &exact(step)), "{add}");
    }
    // Past the largest number.
    let around: Vec<(i64, i64)> = (1..70)
        .map(|count| (i64::from(i32::MAX) - 20, i64::from((i32::MAX - 20).wrapping_add(count))))
        .collect();
    assert!(is_unrolled(4, ("add.s32 %c, %c, 1;", "setp.ne.s32 %p, %c, %end;"), &around));
}

#[test]
fn a_loop_with_a_counter_of_64_bits_or_a_constant_end_reads_the_same() {
    let far = 1 << 40;
    let ranges = up(2, &[0, far, -far]);
    for test in ["setp.lt.s64 %p, %c, %end;", "setp.le.s64 %p, %c, %end;"] {
        assert!(is_unrolled(8, ("add.s64 %c, %c, 2;", test), &ranges), "{test}");
    }
    let to_constant: Vec<(i64, i64)> = (0..120).map(|first| (first, 0)).collect();
    assert!(is_unrolled(4, ("add.s32 %c, %c, 1;", "setp.lt.s32 %p, %c, 100;"), &to_constant));
}

#[test]
fn a_loop_that_may_do_something_else_stays() {
    let few = up(1, &[0]);
    for (step, test) in [
        // Another step, end or test than the rule allows.
        ("add.s32 %c, %c, %n;", "setp.lt.s32 %p, %c, %end;"),
        ("add.s32 %c, %c, 1; add.s32 %c, %c, 1;", "setp.lt.s32 %p, %c, %end;"),
        ("add.s32 %c, %c, 1;", "add.s32 %end, %end, -1; setp.lt.s32 %p, %c, %end;"),
        ("setp.lt.s32 %p, %c, %end;", "add.s32 %c, %c, 1;"),
        ("add.s32 %c, %c, 1;", "setp.lt.s32 %p, %n, %end; setp.lt.and.s32 %p, %c, %end, %p;"),
        ("add.s32 %c, %c, 1;", "setp.lt.s32 %p, %c, %end; @!%p add.u32 %sum, %sum, 5;"),
        // Something that other threads see, or see done.
        ("add.s32 %c, %c, 1;", "st.global.u32 [%o], %c; setp.lt.s32 %p, %c, %end;"),
        ("add.s32 %c, %c, 1;", "atom.global.add.u32 %v, [%o], 1; setp.lt.s32 %p, %c, %end;"),
        ("add.s32 %c, %c, 1;", "ld.volatile.global.u32 %v, [%o]; setp.lt.s32 %p, %c, %end;"),
        ("add.s32 %c, %c, 1;", "membar.gl; setp.lt.s32 %p, %c, %end;"),
        // A branch inside, and one into the loop.
        (
            "add.s32 %c, %c, 1;",
            "setp.lt.s32 %p, %c, 9; @%p bra $on; add.u32 %sum, %sum, 3; $on: setp.lt.s32 %p, %c, %end;",
        ),
    ] {
        assert!(!is_unrolled(4, (step, test), &few), "{step} {test}");
    }
}

#[test]
fn a_loop_of_a_long_kernel_stays() {
    let short = module(4, "add.s32 %c, %c, 1;", "setp.lt.s32 %p, %c, %end;");
    let long = short.replace(" ret;", &("add.u32 %n, %n, 1;\n".repeat(300) + "ret;"));
    let prefix = Prefix { unroll: true, ..Prefix::default() };
    for (text, limit) in [(short, true), (long, false)] {
        let rewritten = prefixed(&source(&text, "k"), &prefix).unwrap().to_string();
        assert_eq!(rewritten.matches("ld.global.u32").count() > 1, limit);
        assert_eq!(rewritten.contains(".maxnreg 64"), limit);
    }
}
