//! Kernels that set the condition of their loop in different ways.

use gridloom_opt::rewrite::{
    Control, ControlForm, LoopTest, Looping, Part, ProgramStep, State, Team, TeamBarrier, team_program,
};

use crate::common::{buffer, devices, launch_team, read, source};

/// The start of a kernel that counts a word down. `%go` is what the condition is set to.
const START: &str = "
    .reg .pred %p, %q;
    .reg .b32 %v, %go, %block;
    .reg .b64 %h, %left;
    .param .b64 first;
    .param .b32 second;
    ld.param.u64 %h, [handle];
    ld.param.u64 %left, [left];
    mov.u32 %block, %ctaid.x;
    setp.ne.u32 %q, %block, 0;
    @%q ret;
    ld.global.u32 %v, [%left];
    sub.u32 %v, %v, 1;
    st.global.u32 [%left], %v;
    setp.ne.u32 %p, %v, 0;
    selp.u32 %go, 1, 0, %p;
";

/// The ways to set it, and whether a call is left in the rewritten kernel.
const WAYS: [(&str, &str, bool); 6] = [
    (
        "a call",
        "st.param.b64 [first], %h; st.param.b32 [second], %go;
        call cudaGraphSetConditional, (first, second);",
        false,
    ),
    (
        "arguments under guards",
        "st.param.b64 [first], %h; @%p st.param.b32 [second], 7; @!%p st.param.b32 [second], 0;
        call cudaGraphSetConditional, (first, second);",
        false,
    ),
    (
        "two calls through the same variables",
        "st.param.b64 [first], %h; st.param.b32 [second], 1;
        call cudaGraphSetConditional, (first, second);
        st.param.b32 [second], %go;
        call cudaGraphSetConditional, (first, second);",
        false,
    ),
    (
        "a call under a guard",
        "st.param.b64 [first], %h; st.param.b32 [second], 0;
        @!%p call cudaGraphSetConditional, (first, second);",
        true,
    ),
    (
        "a part of an argument",
        "st.param.b64 [first], %h; st.param.b16 [second], 0; st.param.b16 [second+2], 0;
        @%p bra $GOES_ON;
        call cudaGraphSetConditional, (first, second);
        $GOES_ON:",
        true,
    ),
    (
        "a function",
        "st.param.b64 [first], %h; st.param.b32 [second], %go;
        call sets, (first, second);",
        true,
    ),
];

fn module(way: &str) -> String {
    format!(
        ".version 8.3
        .target sm_75
        .address_size 64
        .extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
        .func sets(.param .b64 handle, .param .b32 value) {{
            .reg .b64 %h; .reg .b32 %v; .param .b64 first; .param .b32 second;
            ld.param.b64 %h, [handle]; ld.param.b32 %v, [value];
            st.param.b64 [first], %h; st.param.b32 [second], %v;
            call cudaGraphSetConditional, (first, second);
            ret;
        }}
        .visible .entry countdown(.param .u64 handle, .param .u64 left) {{
        {START} {way} ret;
        }}"
    )
}

#[test]
fn a_loop_ends_with_the_pass_that_sets_its_condition_to_0_however_it_does() {
    for device in devices() {
        for (name, way, has_call) in WAYS {
            for (blocks, barrier) in [(1, TeamBarrier::Block), (3, TeamBarrier::Grid)] {
                let kernel = source(&module(way), "countdown");
                let steps = [ProgramStep { kernel, grid: [blocks, 1, 1], block: [1; 3] }];
                let team = Team { blocks, slots: 1, shared: 0, barrier };
                let form = ControlForm::Loop { test_first: true };
                let control =
                    Control { form, test: LoopTest::Condition(0), bodies: vec![vec![Part::Step(0)]] };
                let mut program = team_program(&steps, &[Part::Control(control)], team, 4096).unwrap();
                let text = program.text();
                assert_eq!(text.contains("call"), has_call, "{name}: {text}");
                let counted = buffer(&device, &[0xff; 8]);
                for (at, value) in [(Looping::LIMIT, u64::MAX), (Looping::PASSES, counted.address())] {
                    program.header[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
                }
                program.header[Looping::INITIAL as usize..][..4].copy_from_slice(&1u32.to_le_bytes());
                let left = buffer(&device, &[0; 4]);
                let mut state =
                    program.state.map(|state| buffer(&device, &vec![0; 8 * state.words as usize]));
                for passes in [4u32, 1, 5] {
                    device.write(&*left, 0, &passes.to_le_bytes()).unwrap();
                    let handle =
                        state.as_ref().map_or(0, |memory| memory.address() + u64::from(State::condition(0)));
                    let mut slice = handle.to_le_bytes().to_vec();
                    slice.extend(left.address().to_le_bytes());
                    state = launch_team(&device, &program, team, &[slice], state).unwrap();
                    assert_eq!(read(&device, &counted), u64::from(passes).to_le_bytes(), "{name}, {team:?}");
                }
            }
        }
    }
}
