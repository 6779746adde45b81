//! Atomic operations, on every type, in global and shared memory.

use crate::support::{Module, Params, kernel_text, try_threads};
use gridloom_interp::{Launch, Scratch};

/// Returns the old values that `threads` threads saw of `word`, and the value it ends with.
fn atomic(space: &str, ty: &str, start: u64, operation: &str, threads: u32) -> (Vec<u32>, u32) {
    let out = try_threads(
        &format!(".{space} .align 8 .b64 word;"),
        &format!(
            "setp.eq.u32 %p0, %r1, 0; @%p0 st.{space}.u64 [word], {start}; bar.sync 0;
             {operation}
             bar.sync 0; ld.{space}.u32 %r9, [word]; shl.b32 %r9, %r9, 16; and.b32 %r0, %r0, 0xffff; or.b32 %r0, %r0, %r9;"
        )
        .replace("SPACE", space)
        .replace("TYPE", ty),
        1,
        threads,
    )
    .unwrap_or_else(|fault| panic!("{fault}"));
    let last = out[0] >> 16;
    (out.iter().map(|value| value & 0xffff).collect(), last)
}

#[test]
fn integer_atomics_return_the_old_value_and_store_the_new_one() {
    for space in ["global", "shared"] {
        for ty in ["u32", "s32"] {
            let (mut old, last) = atomic(space, ty, 5, "atom.SPACE.add.TYPE %r0, [word], 2;", 40);
            old.sort_unstable();
            assert_eq!((old, last), ((0..40).map(|i| 5 + 2 * i).collect(), 85), "{space} {ty}");
        }
        assert_eq!(atomic(space, "u32", 9, "atom.SPACE.min.TYPE %r0, [word], %r1;", 40).1, 0);
        assert_eq!(atomic(space, "u32", 9, "atom.SPACE.max.TYPE %r0, [word], %r1;", 40).1, 39);
        assert_eq!(
            atomic(space, "s32", 9, "sub.u32 %r2, 3, %r1; atom.SPACE.max.TYPE %r0, [word], %r2;", 40).1,
            9
        );
        assert_eq!(
            atomic(space, "s32", 9, "sub.u32 %r2, 3, %r1; atom.SPACE.min.TYPE %r0, [word], %r2;", 4).1,
            0
        );
        assert_eq!(
            atomic(space, "b32", 0xff, "atom.SPACE.and.TYPE %r0, [word], 0x3c;", 1),
            (vec![0xff], 0x3c)
        );
        assert_eq!(atomic(space, "b32", 0x1, "atom.SPACE.or.TYPE %r0, [word], 0x30;", 1), (vec![1], 0x31));
        assert_eq!(atomic(space, "b32", 0xf, "atom.SPACE.xor.TYPE %r0, [word], 0x5;", 1), (vec![15], 10));
        assert_eq!(atomic(space, "b32", 7, "atom.SPACE.exch.TYPE %r0, [word], 8;", 1), (vec![7], 8));
    }
}

#[test]
fn inc_and_dec_wrap_at_their_limit() {
    let (mut old, last) = atomic("global", "u32", 0, "atom.SPACE.inc.TYPE %r0, [word], 3;", 8);
    old.sort_unstable();
    assert_eq!((old, last), (vec![0, 0, 1, 1, 2, 2, 3, 3], 0));
    let (mut old, last) = atomic("shared", "u32", 0, "atom.SPACE.dec.TYPE %r0, [word], 3;", 8);
    old.sort_unstable();
    assert_eq!((old, last), (vec![0, 0, 1, 1, 2, 2, 3, 3], 0));
}

#[test]
fn compare_and_swap_succeeds_once() {
    let (old, last) =
        atomic("global", "b32", 7, "add.u32 %r2, %r1, 100; atom.SPACE.cas.TYPE %r0, [word], 7, %r2;", 32);
    assert_eq!(old.iter().filter(|&&value| value == 7).count(), 1);
    assert_eq!(last, 100, "lanes take turns in their order");
}

#[test]
fn sixteen_bit_compare_and_swap_leaves_its_neighbour() {
    let (old, last) = atomic(
        "global",
        "b16",
        0x0102_0304,
        "mov.u16 %h1, 0x0304; mov.u16 %h2, 0x0009; atom.SPACE.cas.TYPE %h0, [word], %h1, %h2; cvt.u32.u16 %r0, %h0;",
        1,
    );
    assert_eq!((old, last), (vec![0x0304], 0x0009));
}

#[test]
fn sixty_four_bit_atomics_carry_into_the_upper_half() {
    let operation = "atom.SPACE.add.TYPE %rd1, [word], 1; cvt.u32.u64 %r0, %rd1; bar.sync 0; ld.SPACE.u64 %rd2, [word]; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r0, %rd2;";
    let (upper, last) = atomic("shared", "u64", 0xffff_ffff, operation, 1);
    assert_eq!((upper, last), (vec![1], 0));
    let (old, last) = atomic(
        "global",
        "b64",
        3,
        "mov.u64 %rd2, 3; mov.u64 %rd3, 44; atom.SPACE.cas.TYPE %rd1, [word], %rd2, %rd3; cvt.u32.u64 %r0, %rd1;",
        1,
    );
    assert_eq!((old, last), (vec![3], 44));
    let (old, last) = atomic(
        "global",
        "s64",
        3,
        "mov.u64 %rd2, -3; atom.SPACE.max.TYPE %rd1, [word], %rd2; cvt.u32.u64 %r0, %rd1;",
        1,
    );
    assert_eq!((old, last), (vec![3], 3));
}

#[test]
fn floating_point_additions_sum() {
    let sum = |space: &str, ty: &str, operation: &str, read: &str| {
        try_threads(
            &format!(".{space} .align 8 .b64 word;"),
            &format!(
                "mov.u64 %rd9, 0; setp.eq.u32 %p0, %r1, 0; @%p0 st.{space}.u64 [word], %rd9; bar.sync 0; {operation} bar.sync 0; {read}"
            )
            .replace("SPACE", space)
            .replace("TYPE", ty),
            1,
            32,
        )
        .unwrap_or_else(|fault| panic!("{fault}"))[0]
    };
    for space in ["global", "shared"] {
        let f32_sum = sum(
            space,
            "f32",
            "mov.f32 %f0, 0f3f000000; red.SPACE.add.TYPE [word], %f0;",
            "ld.SPACE.u32 %r0, [word];",
        );
        assert_eq!(f32::from_bits(f32_sum), 16.0);
        let f64_sum = sum(
            space,
            "f64",
            "mov.u64 %rd1, 0x3fe0000000000000; atom.SPACE.add.TYPE %rd2, [word], %rd1;",
            "ld.SPACE.u32 %r0, [word+4];",
        );
        assert_eq!(f64::from_bits(u64::from(f64_sum) << 32), 16.0);
        // 0.5 and 1.0 in halves.
        let halves = sum(
            space,
            "f16x2",
            "mov.b32 %r2, 0x3c003800; red.SPACE.add.noftz.TYPE [word], %r2;",
            "ld.SPACE.u32 %r0, [word];",
        );
        assert_eq!(halves, 0x5000_4c00);
        let halves = sum(
            space,
            "bf16x2",
            "mov.b32 %r2, 0x3f803f00; red.SPACE.add.noftz.TYPE [word], %r2;",
            "ld.SPACE.u32 %r0, [word];",
        );
        assert_eq!(halves, 0x4200_4180);
    }
}

#[test]
fn a_generic_address_reaches_shared_memory_atomically() {
    let out = try_threads(
        ".shared .u32 word;",
        "setp.eq.u32 %p0, %r1, 0; @%p0 st.shared.u32 [word], 0; bar.sync 0;
         mov.u64 %rd1, word; cvta.shared.u64 %rd1, %rd1; atom.add.u32 %r2, [%rd1], 1;
         bar.sync 0; ld.shared.u32 %r0, [word];",
        1,
        50,
    );
    assert_eq!(out, Ok(vec![50; 50]));
}

#[test]
fn wide_exchange_and_compare_move_128_bits() {
    let out = try_threads(
        ".global .align 16 .b64 words[2] = {1, 2};",
        ".reg .b128 %q<3>;
         mov.u64 %rd1, 1; mov.u64 %rd2, 2; mov.u64 %rd3, 30; mov.u64 %rd4, 40;
         mov.b128 %q0, {%rd1, %rd2}; mov.b128 %q1, {%rd3, %rd4};
         atom.global.cas.b128 %q2, [words], %q0, %q1;
         mov.b128 {%rd5, %rd6}, %q2; ld.global.u32 %r2, [words]; ld.global.u32 %r3, [words+8];
         cvt.u32.u64 %r4, %rd5; cvt.u32.u64 %r5, %rd6;
         mad.lo.u32 %r0, %r2, 100, %r3; mad.lo.u32 %r0, %r0, 10, %r4; mad.lo.u32 %r0, %r0, 10, %r5;",
        1,
        1,
    );
    assert_eq!(out, Ok(vec![304_012]));
}

#[test]
fn blocks_on_several_workers_add_up() {
    let module = Module::of(&format!(
        ".global .u32 total; {}",
        kernel_text("atom.global.add.u32 %r0, [total], 1; red.global.add.u32 [total], 2;")
    ));
    let kernel = module.kernel("test");
    let mut out = vec![0u32; 64 * 64];
    let params = Params::default().buffer(&mut out);
    let launch = Launch {
        grid: [64, 1, 1],
        block: [64, 1, 1],
        params: &params.0,
        ..Launch::new(&kernel, &module.heap)
    };
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let launch = &launch;
            scope.spawn(move || {
                // SAFETY: the kernel writes `out` and its own variable, which only this launch
                // uses.
                unsafe { launch.run_blocks(worker * 16..(worker + 1) * 16, &mut Scratch::new()) }.unwrap();
            });
        }
    });
    assert_eq!(module.variable("total"), (64 * 64 * 3u32).to_le_bytes());
}
