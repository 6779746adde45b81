//! Loads, stores, state spaces and addresses.

use crate::support::{Module, Params, kernel_text, run, thread, threads, try_threads};
use gridloom_interp::Launch;

fn one(before: &str, body: &str) -> u32 {
    try_threads(before, body, 1, 1).unwrap_or_else(|fault| panic!("{fault}"))[0]
}

#[test]
fn narrow_loads_extend_to_the_register() {
    let bytes = ".global .align 4 .b8 bytes[4] = {0x80, 0xff, 0x01, 0x7f};";
    assert_eq!(one(bytes, "ld.global.s8 %r0, [bytes];"), 0xffff_ff80);
    assert_eq!(one(bytes, "ld.global.u8 %r0, [bytes];"), 0x80);
    assert_eq!(one(bytes, "ld.global.s16 %r0, [bytes];"), 0xffff_ff80);
    assert_eq!(one(bytes, "ld.global.u16 %r0, [bytes];"), 0xff80);
    assert_eq!(one(bytes, "ld.global.s32 %rd1, [bytes]; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r0, %rd1;"), 0);
    assert_eq!(
        one(bytes, "ld.global.s8 %rd1, [bytes]; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r0, %rd1;"),
        u32::MAX
    );
}

#[test]
fn a_narrow_store_leaves_its_neighbours() {
    let word = ".global .align 4 .b32 word = 0x11223344;";
    assert_eq!(
        one(word, "mov.u32 %r2, 0xabcd; st.global.u8 [word+1], %r2; ld.global.u32 %r0, [word];"),
        0x1122_cd44
    );
    assert_eq!(
        one(word, "mov.u32 %r2, 0xabcd; st.global.u16 [word+2], %r2; ld.global.u32 %r0, [word];"),
        0xabcd_3344
    );
}

#[test]
fn vectors_are_loaded_and_stored_element_by_element() {
    let array = ".global .align 32 .u32 array[8] = {1, 2, 3, 4, 5, 6, 7, 8}; .global .align 16 .u32 copy[4];";
    assert_eq!(
        one(
            array,
            "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [array+16]; st.global.v4.u32 [copy], {%r5, %r4, %r3, %r2}; ld.global.u32 %r2, [copy]; ld.global.u32 %r3, [copy+12]; mad.lo.u32 %r0, %r2, 10, %r3;"
        ),
        85
    );
    assert_eq!(
        one(array, "ld.global.v2.u64 {%rd1, %rd2}, [array]; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r0, %rd2;"),
        4
    );
    assert_eq!(one(array, "ld.global.v2.u32 {_, %r0}, [array+8];"), 4);
    assert_eq!(
        one(
            array,
            "ld.global.v8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [array]; mad.lo.u32 %r0, %r9, 10, %r2;"
        ),
        81
    );
}

#[test]
fn shared_memory_is_addressed_with_32_bits() {
    let out = try_threads(
        ".shared .align 4 .b8 first[8]; .shared .align 16 .b8 second[128];",
        "mov.u32 %r2, second; mad.lo.u32 %r2, %r1, 4, %r2; st.shared.u32 [%r2], %r1;
         bar.sync 0;
         xor.b32 %r3, %r1, 1; mov.u32 %r4, second; mad.lo.u32 %r4, %r3, 4, %r4; ld.shared.u32 %r0, [%r4];
         st.shared.u32 [first], 1;",
        1,
        32,
    );
    assert_eq!(out, Ok((0..32).map(|i| i ^ 1).collect()));
}

#[test]
fn a_32_bit_shared_address_wraps() {
    // The compiler may fold a negative index into the register and bring it back in the offset.
    let out = try_threads(
        ".shared .align 4 .b8 mem[16];",
        "mov.u32 %r2, mem; sub.u32 %r2, %r2, 8; st.shared.u32 [%r2+8], 5; ld.shared.u32 %r0, [mem];",
        1,
        1,
    );
    assert_eq!(out, Ok(vec![5]));
}

#[test]
fn dynamic_shared_memory_starts_behind_the_static() {
    let module = Module::of(&format!(
        ".shared .align 4 .b8 fixed[20]; .extern .shared .align 16 .b8 dynamic[];\n{}",
        kernel_text(
            "st.shared.u32 [fixed], 3; mov.u32 %r2, dynamic; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1; bar.sync 0;
             ld.shared.u32 %r0, [dynamic+12]; mov.u32 %r4, %dynamic_smem_size; mad.lo.u32 %r0, %r0, 1000, %r4;
             mad.lo.u32 %r0, %r0, 1000, %r2;"
        )
    ));
    let kernel = module.kernel("test");
    assert_eq!(kernel.shared_bytes(), 32);
    let mut out = [0u32; 4];
    let params = Params::default().buffer(&mut out);
    let launch = Launch {
        block: [4, 1, 1],
        dynamic_shared: 16,
        params: &params.0,
        ..Launch::new(&kernel, &module.heap)
    };
    run(&launch).unwrap();
    assert_eq!(out, [3_016_032; 4]);
}

#[test]
fn local_memory_is_private_to_a_thread() {
    let out = threads(
        ".local .align 4 .b8 mine[64];
         mov.u64 %rd1, mine; and.b32 %r2, %r1, 15; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;
         st.local.u32 [%rd1], %r1; bar.sync 0; ld.local.u32 %r0, [%rd1];",
        64,
    );
    assert_eq!(out, (0..64).collect::<Vec<u32>>());
}

#[test]
fn a_generic_address_of_local_memory_works() {
    let out = threads(
        ".local .align 8 .b8 mine[16];
         mov.u64 %rd1, mine; cvta.local.u64 %rd1, %rd1; add.u32 %r2, %r1, 7; st.u32 [%rd1+8], %r2; ld.local.u32 %r0, [mine+8];",
        8,
    );
    assert_eq!(out, (7..15).collect::<Vec<u32>>());
}

#[test]
fn addresses_convert_to_their_space_and_back() {
    let before = ".shared .align 4 .b8 mem[16]; .const .u32 fixed = 11; .global .u32 word = 12;";
    let body = "
        mov.u64 %rd1, mem; cvta.shared.u64 %rd2, %rd1; cvta.to.shared.u64 %rd3, %rd2; setp.eq.u64 %p0, %rd1, %rd3; selp.u32 %r0, 1, 0, %p0;
        mov.u64 %rd4, fixed; cvta.const.u64 %rd4, %rd4; ld.u32 %r2, [%rd4]; add.u32 %r0, %r0, %r2;
        mov.u64 %rd5, word; cvta.global.u64 %rd5, %rd5; ld.u32 %r3, [%rd5]; add.u32 %r0, %r0, %r3;";
    assert_eq!(one(before, body), 24);
}

#[test]
fn isspacep_knows_the_windows() {
    let before = ".shared .align 4 .b8 mem[16]; .const .u32 fixed = 11; .global .u32 word = 12;";
    let test = |address: &str| {
        let mut bits = 0;
        for (i, space) in ["global", "const", "shared", "local", "param"].iter().enumerate() {
            let body = format!(
                ".local .align 4 .b8 own[4]; {address} isspacep.{space} %p0, %rd1; selp.u32 %r0, 1, 0, %p0;"
            );
            bits |= one(before, &body) << i;
        }
        bits
    };
    assert_eq!(test("mov.u64 %rd1, word;"), 0b00001);
    assert_eq!(test("mov.u64 %rd1, fixed;"), 0b00010);
    assert_eq!(test("mov.u64 %rd1, mem; cvta.shared.u64 %rd1, %rd1;"), 0b00100);
    assert_eq!(test("mov.u64 %rd1, own; cvta.local.u64 %rd1, %rd1;"), 0b01000);
    assert_eq!(test("mov.u64 %rd1, out; cvta.param.u64 %rd1, %rd1;"), 0b10000);
}

#[test]
fn kernel_parameters_can_be_addressed() {
    let module = Module::of(
        ".visible .entry test(.param .u64 out, .param .align 4 .b8 data[16]) {
            .reg .b32 %r<4>; .reg .b64 %rd<4>;
            ld.param.u64 %rd0, [out];
            mov.b64 %rd1, data; ld.param.u32 %r0, [%rd1+4];
            cvta.param.u64 %rd2, %rd1; ld.u32 %r1, [%rd2+8];
            ld.param.v2.u32 {%r2, %r3}, [data+8];
            st.global.u32 [%rd0], %r0; st.global.u32 [%rd0+4], %r1; st.global.u32 [%rd0+8], %r3; ret;
        }",
    );
    let kernel = module.kernel("test");
    let mut out = [0u32; 3];
    let mut params = Params::default().buffer(&mut out);
    for value in [10u32, 20, 30, 40] {
        params = params.u32(value);
    }
    run(&Launch { params: &params.0, ..Launch::new(&kernel, &module.heap) }).unwrap();
    assert_eq!(out, [20, 30, 40]);
    let described: Vec<_> =
        kernel.params().iter().map(|p| (p.name.as_str(), p.offset, p.size, p.align)).collect();
    assert_eq!(described, [("out", 0, 8, 8), ("data", 8, 16, 4)]);
}

#[test]
fn variables_start_with_their_initial_values_and_addresses() {
    let before =
        ".global .align 8 .u32 values[3] = {7, 8}; .global .align 8 .u64 pointer = generic(values)+4;";
    assert_eq!(one(before, "ld.global.u64 %rd1, [pointer]; ld.u32 %r0, [%rd1];"), 8);
    assert_eq!(one(before, "ld.global.u32 %r0, [values+8];"), 0);
}

#[test]
fn alloca_gives_stack_that_stackrestore_takes_back() {
    let body = "
        stacksave.u64 %rd1;
        alloca.u64 %rd2, 32, 16; st.local.u32 [%rd2+28], 5; ld.local.u32 %r2, [%rd2+28];
        stackrestore.u64 %rd1;
        alloca.u64 %rd3, 32, 16;
        setp.eq.u64 %p0, %rd2, %rd3; selp.u32 %r0, %r2, 0, %p0;";
    assert_eq!(thread(body), 5);
}

#[test]
fn asynchronous_copies_are_there_after_the_wait() {
    let before = ".shared .align 16 .b8 mem[32]; .global .align 16 .u32 data[4] = {1, 2, 3, 4};";
    let copy = |instruction: &str| {
        one(
            before,
            &format!(
                "mov.u32 %r2, mem; mov.u64 %rd1, data; mov.u32 %r5, 9;
                 st.shared.v4.u32 [mem], {{%r5, %r5, %r5, %r5}};
                 {instruction} cp.async.commit_group; cp.async.wait_group 0;
                 ld.shared.v4.u32 {{%r3, %r4, %r5, %r6}}, [mem];
                 mad.lo.u32 %r0, %r3, 10, %r4; mad.lo.u32 %r0, %r0, 10, %r5; mad.lo.u32 %r0, %r0, 10, %r6;"
            ),
        )
    };
    assert_eq!(copy("cp.async.cg.shared.global [%r2], [%rd1], 16;"), 1234);
    assert_eq!(copy("cp.async.ca.shared.global [%r2], [%rd1], 4;"), 1999);
    assert_eq!(copy("cp.async.ca.shared.global [%r2], [%rd1], 16, 8;"), 1200);
    assert_eq!(copy("cp.async.ca.shared.global [%r2+8], [%rd1+8], 8;"), 9934);
}

#[test]
fn hints_and_policies_are_accepted() {
    let before = ".global .align 16 .u32 data[4] = {1, 2, 3, 4};";
    let body = "
        mov.u64 %rd1, data; prefetch.global.L2 [%rd1]; prefetchu.L1 [%rd1];
        createpolicy.fractional.L2::evict_last.b64 %rd2, 1.0;
        ld.global.nc.L1::no_allocate.u32 %r2, [%rd1];
        ld.global.L2::cache_hint.u32 %r3, [%rd1+4], %rd2;
        ldu.global.u32 %r4, [%rd1+8]; ld.global.cg.u32 %r5, [%rd1+12];
        griddepcontrol.wait;
        add.u32 %r0, %r2, %r3; add.u32 %r0, %r0, %r4; add.u32 %r0, %r0, %r5;";
    assert_eq!(one(before, body), 10);
}

#[test]
fn registers_pack_and_unpack() {
    assert_eq!(thread("mov.b64 %rd1, {5, 6}; mov.b64 {%r2, %r3}, %rd1; mad.lo.u32 %r0, %r2, 10, %r3;"), 56);
    assert_eq!(thread("mov.u16 %h0, 1; mov.u16 %h1, 2; mov.b32 %r0, {%h0, %h1};"), 0x0002_0001);
    assert_eq!(
        thread("mov.u64 %rd1, 0x0004000300020001; mov.b64 {_, %h1, _, %h3}, %rd1; mov.b32 %r0, {%h3, %h1};"),
        0x0002_0004
    );
    assert_eq!(
        thread(
            "mov.u16 %h0, 1; mov.b64 %rd1, {%h0, %h0, %h0, %h0}; shr.u64 %rd1, %rd1, 32; cvt.u32.u64 %r0, %rd1;"
        ),
        0x0001_0001
    );
}

#[test]
fn special_registers_tell_the_shape_of_the_launch() {
    let module = Module::of(
        ".visible .entry test(.param .u64 out) {
            .reg .b32 %r<9>; .reg .b64 %rd<3>;
            mov.u32 %r0, %ctaid.z; mov.u32 %r1, %nctaid.y; mad.lo.u32 %r0, %r0, %r1, 0;
            mov.u32 %r2, %ctaid.y; add.u32 %r0, %r0, %r2;
            mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
            mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y; mov.u32 %r5, %ntid.z;
            mul.lo.u32 %r6, %r3, %r4; mul.lo.u32 %r6, %r6, %r5; mul.lo.u32 %r0, %r0, %r6;
            mov.u32 %r7, %tid.z; mov.u32 %r8, %tid.y; mad.lo.u32 %r7, %r7, %r4, %r8; mov.u32 %r8, %tid.x; mad.lo.u32 %r7, %r7, %r3, %r8;
            add.u32 %r0, %r0, %r7;
            ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r0; ret;
        }",
    );
    let kernel = module.kernel("test");
    let mut out = vec![u32::MAX; 2 * 3 * 2 * 5 * 3 * 4];
    let params = Params::default().buffer(&mut out);
    let launch =
        Launch { grid: [2, 3, 2], block: [5, 3, 4], params: &params.0, ..Launch::new(&kernel, &module.heap) };
    run(&launch).unwrap();
    assert_eq!(out, (0..out.len() as u32).collect::<Vec<u32>>());
}
