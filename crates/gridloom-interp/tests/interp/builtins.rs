//! `printf`, `assert`, `malloc`, `free` and conditions.

use crate::support::{Module, Params, run};
use gridloom_interp::{CONDITION_TAG, FaultKind, Heap, Launch};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

const PRINT: &str = r#"
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 $str[17] = {116, 104, 114, 101, 97, 100, 32, 37, 100, 32, 37, 46, 50, 102, 10, 0, 0};
.visible .entry test() {
    .local .align 8 .b8 depot[16];
    .reg .b32 %r<4>; .reg .b64 %rd<5>; .reg .f64 %d;
    mov.u32 %r0, %tid.x;
    mov.f64 %d, 0d3ff8000000000000;
    st.local.u32 [depot], %r0;
    st.local.f64 [depot+8], %d;
    mov.u64 %rd0, depot; cvta.local.u64 %rd1, %rd0;
    mov.u64 %rd2, $str; cvta.global.u64 %rd3, %rd2;
    { .param .b64 p0; .param .b64 p1; .param .b32 q;
      st.param.b64 [p0], %rd3; st.param.b64 [p1], %rd1;
      call.uni (q), vprintf, (p0, p1); ld.param.b32 %r1, [q]; }
    ret;
}"#;

#[test]
fn printf_in_a_kernel_prints() {
    let module = Module::of(PRINT);
    let kernel = module.kernel("test");
    let printed = Mutex::new(Vec::new());
    let print = |text: &[u8]| printed.lock().unwrap().extend_from_slice(text);
    run(&Launch { block: [2, 1, 1], print: &print, ..Launch::new(&kernel, &module.heap) }).unwrap();
    assert_eq!(String::from_utf8(printed.into_inner().unwrap()).unwrap(), "thread 0 1.50\nthread 1 1.50\n");
}

#[test]
fn a_failed_assertion_says_which() {
    let bytes = |text: &str| {
        let list: Vec<String> = text.bytes().chain([0]).map(|byte| byte.to_string()).collect();
        format!("[{}] = {{{}}}", list.len(), list.join(", "))
    };
    let module = Module::of(&format!(
        ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
         .global .align 1 .b8 message{}; .global .align 1 .b8 file{}; .global .align 1 .b8 function{};
         .visible .entry test() {{
            .reg .b64 %rd<3>;
            mov.u64 %rd0, message; mov.u64 %rd1, file; mov.u64 %rd2, function;
            {{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
               st.param.b64 [p0], %rd0; st.param.b64 [p1], %rd1; st.param.b32 [p2], 41; st.param.b64 [p3], %rd2; st.param.b64 [p4], 1;
               call.uni __assertfail, (p0, p1, p2, p3, p4); }}
            ret;
         }}",
        bytes("i < n"),
        bytes("heat.cu"),
        bytes("void step()")
    ));
    let kernel = module.kernel("test");
    let fault = run(&Launch::new(&kernel, &module.heap)).unwrap_err();
    let kind = FaultKind::Assert {
        message: "i < n".into(),
        file: "heat.cu".into(),
        line: 41,
        function: "void step()".into(),
    };
    assert_eq!(fault.kind, kind);
}

const HEAP: &str = "
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.visible .entry test(.param .u64 out, .param .u64 size, .param .u32 twice) {
    .reg .b64 %rd<6>; .reg .b32 %r<4>; .reg .pred %p<2>;
    ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [size]; ld.param.u32 %r1, [twice];
    { .param .b64 n; .param .b64 r; st.param.b64 [n], %rd1; call.uni (r), malloc, (n); ld.param.b64 %rd2, [r]; }
    setp.eq.u64 %p0, %rd2, 0;
    @%p0 st.global.u32 [%rd0], 99;
    @%p0 ret;
    st.u32 [%rd2+4], 7; ld.u32 %r0, [%rd2+4]; st.global.u32 [%rd0], %r0;
    { .param .b64 q; st.param.b64 [q], %rd2; call.uni free, (q); }
    setp.eq.u32 %p1, %r1, 0; @%p1 ret;
    { .param .b64 q; st.param.b64 [q], %rd2; call.uni free, (q); }
    ret;
}";

fn with_heap(heap: &Heap, size: u64, twice: u32) -> (Result<(), FaultKind>, u32) {
    let module = Module::of(HEAP);
    let kernel = module.kernel("test");
    let mut out = [0u32];
    let params = Params::default().buffer(&mut out).u64(size).u32(twice);
    let map = crate::support::Map::default().with(&out);
    let launch = Launch { params: &params.0, memory_map: Some(&map), ..Launch::new(&kernel, heap) };
    (run(&launch).map_err(|fault| fault.kind), out[0])
}

#[test]
fn memory_of_the_device_heap_can_be_used_and_freed() {
    let heap = Heap::new(1024);
    assert_eq!(with_heap(&heap, 64, 0), (Ok(()), 7));
    assert_eq!(heap.used(), 0);
}

#[test]
fn an_exhausted_heap_returns_null() {
    assert_eq!(with_heap(&Heap::new(32), 64, 0), (Ok(()), 99));
}

#[test]
fn freeing_twice_faults() {
    let (result, _) = with_heap(&Heap::new(1024), 64, 1);
    assert!(matches!(result, Err(FaultKind::InvalidFree { .. })), "{result:?}");
}

const CONDITION: &str = "
.extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);
.visible .entry test(.param .u64 handle) {
    .reg .b64 %rd; .reg .b32 %r;
    ld.param.u64 %rd, [handle]; mov.u32 %r, 6;
    { .param .b64 h; .param .b32 v; st.param.b64 [h], %rd; st.param.b32 [v], %r; call.uni cudaGraphSetConditional, (h, v); }
    ret;
}";

#[test]
fn a_kernel_sets_the_condition_of_its_handle() {
    let module = Module::of(CONDITION);
    let kernel = module.kernel("test");
    let conditions = [AtomicU32::new(1), AtomicU32::new(2)];
    let params = Params::default().u64(CONDITION_TAG | 1);
    run(&Launch { params: &params.0, conditions: &conditions, ..Launch::new(&kernel, &module.heap) })
        .unwrap();
    assert_eq!(conditions.map(|c| c.load(Ordering::Relaxed)), [1, 6]);
}

#[test]
fn a_handle_of_no_condition_faults() {
    let module = Module::of(CONDITION);
    let kernel = module.kernel("test");
    for handle in [0, 1, CONDITION_TAG | 1, u64::MAX] {
        let conditions = [AtomicU32::new(1)];
        let params = Params::default().u64(handle);
        let launch =
            Launch { params: &params.0, conditions: &conditions, ..Launch::new(&kernel, &module.heap) };
        assert_eq!(run(&launch).unwrap_err().kind, FaultKind::BadCondition { handle });
    }
}
