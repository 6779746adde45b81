//! Modules: headers, variables, functions, directives, scopes and debug information.

use crate::common::assert_round_trip;
use gridloom_ptx::{
    Attribute, FunctionKind, Initializer, Item, Linkage, Module, PointerAttr, ScalarType, SectionItem,
    SymbolId, VarSpace, Variable, Version, check, parse,
};

fn read(text: &str) -> Module {
    let text = format!(".version 8.5\n.target sm_90a, debug\n.address_size 64\n{text}");
    let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let wrong: Vec<String> = check(&module).iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_round_trip(&module);
    module
}

fn errors(text: &str) -> Vec<String> {
    let text = format!(".version 8.5\n.target sm_90a\n.address_size 64\n{text}");
    match parse(&text) {
        Ok(module) => check(&module).into_iter().map(|diagnostic| diagnostic.message).collect(),
        Err(error) => error.diagnostics().iter().map(|diagnostic| diagnostic.message.clone()).collect(),
    }
}

fn variable<'a>(module: &'a Module, name: &str) -> &'a Variable {
    let (id, _) = module.find(name).expect(name);
    module.variable(id).expect("a variable")
}

#[test]
fn the_header_is_read() {
    let module = read("");
    assert_eq!(module.version, Version { major: 8, minor: 5 });
    assert_eq!(module.target.words, ["sm_90a", "debug"]);
    assert_eq!(module.target.sm(), Some(90));
    assert_eq!(module.address_size, 64);
    assert_eq!(parse(".version 9.1 .target sm_120").expect("a module").address_size, 64);
}

#[test]
fn variables_have_sizes_and_alignments() {
    let module = read(
        ".visible .global .align 8 .b8 bytes[12];
         .const .f32 pi = 0f40490FDB;
         .global .v4 .f32 quad;
         .shared .align 16 .b8 tile[64][32];
         .extern .shared .align 16 .b8 dynamic[];
         .extern .global .u32 elsewhere;
         .weak .global .u64 counter = 7;
         .common .global .align 4 .u32 shared_by_all;
         .global .attribute(.managed) .align 4 .u32 managed;
         .global .u32 first, second = 2;",
    );
    assert_eq!((variable(&module, "bytes").size(), variable(&module, "bytes").alignment()), (12, 8));
    assert_eq!(variable(&module, "quad").size(), 16);
    assert_eq!(variable(&module, "quad").alignment(), 16);
    assert_eq!(variable(&module, "tile").size(), 2048);
    assert!(variable(&module, "dynamic").is_unsized());
    assert_eq!(variable(&module, "dynamic").size(), 0);
    assert_eq!(variable(&module, "elsewhere").linkage, Linkage::Extern);
    assert_eq!(variable(&module, "counter").linkage, Linkage::Weak);
    assert_eq!(variable(&module, "shared_by_all").linkage, Linkage::Common);
    assert_eq!(variable(&module, "managed").attributes, [Attribute::Managed]);
    assert_eq!(variable(&module, "pi").image().expect("a value").bytes, 0x4049_0fdb_u32.to_le_bytes());
    assert_eq!(variable(&module, "second").image().expect("a value").bytes, [2, 0, 0, 0]);
    assert_eq!(variable(&module, "tile").space, VarSpace::Shared);
}

#[test]
fn initial_values_become_bytes() {
    let module = read(
        ".global .u8 text[] = {72, 105, 0};
         .global .s16 negative[2] = {-1, -2};
         .global .u32 grid[2][3] = {{1, 2}, {4, 5, 6}};
         .global .u32 flat[2][2] = {1, 2, 3};
         .global .f64 doubles[] = {1.0, 0d4000000000000000, 0f3F800000};
         .global .f32 singles[] = {0.5, 2};
         .global .b32 raw = 0f3F800000;
         .global .v2 .u32 pair = {1, 2};
         .global .v2 .u16 pairs[2] = {{1, 2}, {3, 4}};
         .global .u32 computed = (1 << 4) + WARP_SZ * 2;
         .global .u8 empty[4] = {};",
    );
    let words = |name: &str| -> Vec<u32> {
        variable(&module, name)
            .image()
            .expect("a value")
            .bytes
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    };
    assert_eq!(variable(&module, "text").size(), 3);
    assert_eq!(variable(&module, "text").image().expect("a value").bytes, b"Hi\0");
    assert_eq!(variable(&module, "negative").image().expect("a value").bytes, [0xff, 0xff, 0xfe, 0xff]);
    assert_eq!(words("grid"), [1, 2, 0, 4, 5, 6]);
    assert_eq!(words("flat"), [1, 2, 3]);
    assert_eq!(words("raw"), [0x3f80_0000]);
    assert_eq!(words("pair"), [1, 2]);
    assert_eq!(words("computed"), [80]);
    assert_eq!(words("singles"), [0.5f32.to_bits(), 2f32.to_bits()]);
    let doubles: Vec<f64> = variable(&module, "doubles")
        .image()
        .expect("a value")
        .bytes
        .chunks(8)
        .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
        .collect();
    assert_eq!(doubles, [1.0, 2.0, 1.0]);
}

#[test]
fn initial_values_can_be_addresses() {
    let module = read(
        ".global .u32 x[4];
         .func f() { ret; }
         .global .u64 pointers[] = {x, x+8, generic(x), generic(x)+4, f, 0};
         .global .u8 bytes[] = {0xFF(x), 0xFF00(x), 0xFF000000000000(generic(x)+1)};",
    );
    let relocations = &variable(&module, "pointers").image().expect("a value").relocations;
    let described: Vec<(u64, i64, bool)> =
        relocations.iter().map(|r| (r.offset, r.addend, r.generic)).collect();
    assert_eq!(described, [(0, 0, false), (8, 8, false), (16, 0, true), (24, 4, true), (32, 0, false)]);
    let bytes = &variable(&module, "bytes").image().expect("a value").relocations;
    assert_eq!(
        bytes.iter().map(|r| (r.byte, r.addend)).collect::<Vec<_>>(),
        [(Some(0), 0), (Some(1), 0), (Some(6), 1)]
    );
}

#[test]
fn wrong_initial_values_are_errors() {
    assert_eq!(errors(".global .u32 x[2] = {1, 2, 3};"), ["more values than the variable has elements"]);
    assert_eq!(errors(".global .u32 x[2] = {{1}, 2};"), ["more braces than the variable has dimensions"]);
    assert_eq!(errors(".global .u32 x[2] = 1;").len(), 1);
    assert_eq!(errors(".global .u64 x = y;"), ["unknown variable or function `y`"]);
    assert_eq!(
        errors(".global .u8 x[] = {0xFFF(y)};"),
        ["a mask selects one byte: 0xFF, 0xFF00, 0xFF0000 and so on"]
    );
    assert_eq!(errors(".shared .u32 x = 1;"), ["`x`: a .shared variable has no initial value"]);
    assert_eq!(errors(".global .pred x;"), ["`x`: a predicate has no place in memory"]);
}

#[test]
fn texture_references_keep_their_fields() {
    let module =
        read(".global .texref t; .global .samplerref s = { addr_mode_0 = wrap, filter_mode = nearest };");
    assert!(matches!(&variable(&module, "s").init, Some(Initializer::Opaque(fields)) if fields.len() == 2));
}

#[test]
fn kernel_parameters_have_offsets_in_the_buffer() {
    let module = read(
        ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u8 b, .param .align 8 .b8 c[12], .param .u32 d,
             .param .u16 e) { ret; }",
    );
    let (_, kernel) = module.entry("k").expect("the kernel");
    let layout: Vec<(&str, u64, u64, u64)> = kernel
        .params
        .iter()
        .map(|p| (p.var.name.as_str(), p.offset, p.var.size(), p.var.alignment()))
        .collect();
    assert_eq!(layout, [("a", 0, 8, 8), ("b", 8, 1, 1), ("c", 16, 12, 8), ("d", 28, 4, 4), ("e", 32, 2, 2)]);
    assert_eq!(kernel.param_bytes(), 34);
    assert_eq!(
        kernel.params[0].pointer,
        Some(PointerAttr { space: Some(VarSpace::Global), align: Some(16) })
    );
}

#[test]
fn every_kernel_directive() {
    let module = read(
        ".entry k() .maxntid 256, 2 .minnctapersm 2 .maxnctapersm 4 .maxnreg 64 .reqnctapercluster 2, 1, 1
             .maxclusterrank 8 .explicitcluster .blocksareclusters .pragma \"nounroll\"; .futuredirective 3, 4 { ret; }
         .entry l() .reqntid 32 .noreturn { exit; }
         .func f() .abi_preserve 12 .abi_preserve_control 3 { ret; }",
    );
    let (_, kernel) = module.entry("k").expect("the kernel");
    let directives = &kernel.directives;
    assert_eq!(directives.maxntid, Some([256, 2, 1]));
    assert_eq!(directives.reqnctapercluster, Some([2, 1, 1]));
    assert_eq!((directives.minnctapersm, directives.maxnctapersm), (Some(2), Some(4)));
    assert_eq!((directives.maxnreg, directives.maxclusterrank), (Some(64), Some(8)));
    assert!(directives.explicitcluster && directives.blocksareclusters);
    assert_eq!(directives.pragmas, ["nounroll"]);
    assert_eq!(directives.other, [("futuredirective".to_owned(), vec![3, 4])]);
    let (_, other) = module.entry("l").expect("the kernel");
    assert_eq!(other.directives.reqntid, Some([32, 1, 1]));
    assert!(other.directives.noreturn);
}

#[test]
fn functions_are_declared_then_defined() {
    let module = read(
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
         .func (.param .b32 r) callee(.param .b32 x);
         .entry k() { .reg .b32 %r; .param .b32 a; .param .b32 b; call (b), callee, (a); ret; }
         .func (.param .b32 r) callee(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; st.param.b32 [r], %r; ret; }",
    );
    let (id, _) = module.find("callee").expect("the function");
    assert_eq!(id, SymbolId(1));
    assert!(module.function(id).expect("a function").body.is_some());
    assert_eq!(
        module.items,
        [
            Item::Declare(SymbolId(0)),
            Item::Declare(SymbolId(1)),
            Item::Define(SymbolId(2)),
            Item::Define(SymbolId(1))
        ]
    );
    assert_eq!(module.entries().count(), 1);
    assert_eq!(module.functions().filter(|(_, f)| f.kind == FunctionKind::Func).count(), 2);
}

#[test]
fn functions_may_pass_values_in_registers() {
    let module = read(".func (.reg .u32 result) twice(.reg .u32 x) { add.u32 result, x, x; ret; }");
    let (id, _) = module.find("twice").expect("the function");
    let function = module.function(id).expect("a function");
    assert_eq!(function.returns[0].register.map(|reg| reg.0), Some(0));
    assert_eq!(function.params[0].register.map(|reg| reg.0), Some(1));
}

#[test]
fn aliases_lead_to_their_function() {
    let module = read(".func f() { ret; } .func g(); .alias g, f;");
    let (id, _) = module.find("g").expect("the alias");
    assert_eq!(module.function(id).expect("a function").name, "f");
}

#[test]
fn a_name_declared_twice_is_an_error() {
    assert_eq!(errors(".global .u32 x; .global .u32 x;"), ["`x` is already declared"]);
    assert_eq!(errors(".func f() { ret; } .func f() { ret; }"), ["`f` is defined twice"]);
    assert_eq!(errors(".global .u32 f; .func f() { ret; }"), ["`f` is already declared"]);
    assert!(errors(".extern .global .u32 x; .global .u32 x = 4;").is_empty());
    assert!(errors(".global .u32 x = 4; .extern .global .u32 x;").is_empty());
}

#[test]
fn a_variable_declared_extern_may_be_defined_later() {
    let module = read(".extern .global .u64 x[]; .global .u64 y = x; .visible .global .u64 x[2] = {y, 7};");
    let x = variable(&module, "x");
    assert_eq!((x.linkage, x.size()), (Linkage::Visible, 16));
    assert_eq!(module.items.last(), Some(&Item::Define(SymbolId(0))));
}

#[test]
fn inner_scopes_shadow_outer_ones() {
    let module = read(
        ".global .u32 x;
         .entry k() {
             .reg .b32 %r<4>; .reg .b64 %rd; .reg .b64 a;
             { .reg .b32 a; mov.b32 a, 1; { .reg .pred a; setp.eq.s32 a, %r1, 0; } mov.b32 a, 2; }
             mov.b64 a, 3;
             { .reg .b32 %r<2>; mov.b32 %r1, 4; mov.b32 %r3, 5; }
             { .local .u32 x; mov.u64 %rd, x; }
             mov.u64 %rd, x;
             ret;
         }",
    );
    let (_, kernel) = module.entry("k").expect("the kernel");
    let text = module.to_string();
    for line in ["mov.b32 a$1_, 1", "setp.eq.s32 a$2_, %r1, 0", "mov.b32 a$1_, 2", "mov.b64 a, 3"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    for line in ["mov.b32 %r$1_1, 4", "mov.b32 %r3, 5", "mov.u64 %rd, x$1_", "mov.u64 %rd, x;"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(kernel.body.as_ref().expect("a body").registers.len(), 4 + 1 + 1 + 1 + 1 + 2);
}

#[test]
fn a_register_named_like_a_special_one_does_not_hide_it_elsewhere() {
    let module = read(
        ".entry k() {
             .reg .b32 %r;
             { .reg .b32 %laneid, %pm<2>; mov.b32 %laneid, 1; mov.b32 %pm0, 2; }
             mov.b32 %r, %laneid;
             mov.b32 %r, %pm0;
             ret;
         }",
    );
    let text = module.to_string();
    for line in ["mov.b32 %laneid$1_, 1", "mov.b32 %pm$1_0, 2", "mov.b32 %r, %laneid;", "mov.b32 %r, %pm0;"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(errors(".global .u32 %clock;"), ["`%clock` is the name of a special register"]);
}

#[test]
fn vector_registers_are_split_into_elements() {
    let module = read(
        ".entry k(.param .u64 p) {
             .reg .v4 .f32 %v; .reg .b64 %rd; .reg .f32 %f;
             ld.param.u64 %rd, [p];
             ld.global.v4.f32 %v, [%rd];
             add.f32 %f, %v.x, %v.w;
             st.global.v4.f32 [%rd], {%f, %v.y, %v.z, %v.a};
             ret;
         }",
    );
    let (_, kernel) = module.entry("k").expect("the kernel");
    let registers = &kernel.body.as_ref().expect("a body").registers;
    assert_eq!(registers.len(), 6);
    assert_eq!(registers.types().filter(|ty| *ty == ScalarType::F32).count(), 5);
}

#[test]
fn ranges_of_vectors_and_of_variables() {
    let module = read(
        ".entry k() {
             .reg .v2 .b16 %v<3>; .reg .b32 %r<2>; .reg .b16 %h; .local .align 8 .u64 slot<2>;
             mov.b32 %v2, %r1;
             mov.b16 %h, %v2.y;
             mov.b32 %r0, %v0;
             st.local.b16 [slot1+2], %v1.x;
             ret;
         }",
    );
    let (_, kernel) = module.entry("k").expect("the kernel");
    let body = kernel.body.as_ref().expect("a body");
    assert_eq!(body.registers.len(), 6 + 2 + 1);
    assert_eq!(body.locals.len(), 2);
    assert!(module.to_string().contains("mov.b16 %h, %v$1_5;"));
}

#[test]
fn a_sum_as_a_value_becomes_an_addition() {
    let module = read(".entry k() { .reg .b32 %r<4>; .reg .pred %p; @%p add.u32 %r1, %r2+4, %r3+-1; ret; }");
    let text = module.to_string();
    for line in
        ["add.u32 %sink$1_, %r2, 4;", "add.u32 %sink$2_, %r3, -1;", "@%p add.u32 %r1, %sink$1_, %sink$2_;"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(
        errors(".entry k() { .reg .f32 %f<4>; add.f32 %f1, %f2+4, %f3; }"),
        ["an offset from a .f32 register"]
    );
}

#[test]
fn registers_are_found_by_name_and_number() {
    let module = read(".entry k() { .reg .b32 %r<12>; .reg .pred p; ret; }");
    let (_, kernel) = module.entry("k").expect("the kernel");
    let registers = &kernel.body.as_ref().expect("a body").registers;
    let reg = registers.find("%r11").expect("a register");
    assert_eq!((reg.0, registers.name(reg), registers.ty(reg)), (11, "%r11".to_owned(), ScalarType::B32));
    assert_eq!(registers.find("p").map(|reg| reg.0), Some(12));
    assert_eq!((registers.find("%r12"), registers.find("%r01")), (None, None));
}

#[test]
fn source_positions_follow_the_instructions() {
    let module = read(
        ".file 1 \"a.cu\", 1700000000, 1234
         .file 2 \"b.h\"
         .entry k() {
             .reg .b32 %r<2>;
             add.s32 %r0, %r1, 1;
             .loc 1 10 3
             add.s32 %r0, %r1, 2;
             add.s32 %r0, %r1, 3;
             .loc 2 5 1, function_name $L__info_string0, inlined_at 1 11 7
             label: add.s32 %r0, %r1, 4;
             .loc 1 10 3
             ret;
         }
         .section .debug_str { $L__info_string0: .b8 102, 0 }",
    );
    assert_eq!(module.files[0].stamp, Some((1_700_000_000, 1234)));
    let (_, kernel) = module.entry("k").expect("the kernel");
    let body = kernel.body.as_ref().expect("a body");
    let lines: Vec<Option<u32>> = body
        .instructions
        .iter()
        .map(|instruction| instruction.location.map(|id| body.location(id).line))
        .collect();
    assert_eq!(lines, [None, Some(10), Some(10), Some(5), Some(10)]);
    let inlined =
        body.location(body.instructions[3].location.expect("a place")).inlined.as_ref().expect("inlined");
    assert_eq!((inlined.function_label.as_str(), inlined.line), ("$L__info_string0", 11));
    assert_eq!(body.locations.len(), 2);
}

#[test]
fn the_place_of_an_inlined_call_is_kept_and_printed_before_it() {
    let module = read(
        ".entry k() {
             .loc 1 20 1
             .loc 1 11 7, function_name $L__info_string1, inlined_at 1 20 1
             .loc 2 5 1, function_name $L__info_string0, inlined_at 1 11 7
             .loc 9 9 9
             .loc 2 5 1, function_name $L__info_string0, inlined_at 1 11 7
             ret;
         }",
    );
    let (_, kernel) = module.entry("k").expect("the kernel");
    let lines: Vec<u32> =
        kernel.body.as_ref().expect("a body").locations.iter().map(|place| place.line).collect();
    assert_eq!(lines, [20, 11, 5]);
    let text = module.to_string();
    let places: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix(".loc ")).map(|rest| &rest[..6]).collect();
    assert_eq!(places, ["1 20 1", "1 11 7", "2 5 1,"]);
}

#[test]
fn debug_sections_are_kept() {
    let module = read(
        ".section .debug_abbrev { .b8 1, 17, 1 .b8 0 }
         .section .debug_info { .b32 95 .b32 .debug_abbrev .b64 $L__func_begin0 .b64 a+4 .b32 end-start start: .b8 0 end: }",
    );
    assert_eq!(module.sections.len(), 2);
    assert_eq!(module.sections[1].items.len(), 8);
    assert!(matches!(&module.sections[1].items[5], SectionItem::Label(name) if name == "start"));
}

#[test]
fn pragmas_keep_their_place() {
    let module = read(".pragma \"global\"; .entry k() { exit; .pragma \"nounroll\"; ret; }");
    let (_, kernel) = module.entry("k").expect("the kernel");
    let pragmas = &kernel.body.as_ref().expect("a body").pragmas;
    assert_eq!((pragmas[0].at, pragmas[0].texts.as_slice()), (1, &["nounroll".to_owned()][..]));
    assert!(module.items.contains(&Item::Pragma(vec!["global".to_owned()])));
}

#[test]
fn comments_line_markers_and_a_final_nul_are_skipped() {
    let text =
        ".version 8.0 // one\n.target /* two\n lines */ sm_80\n# 1 \"x.cu\"\n.entry k(){/**/ret;}\n\0\0";
    assert!(parse(text).expect("a module").entry("k").is_some());
}

#[test]
fn bytes_that_are_not_utf8_are_harmless_in_comments() {
    let module = gridloom_ptx::parse_bytes(b".version 8.0 .target sm_80 // \xff\xfe\n.entry k() { ret; }");
    assert!(module.expect("a module").entry("k").is_some());
}
