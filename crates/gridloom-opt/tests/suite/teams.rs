//! Programs of several blocks, whose results reveal the order of their steps.

use gridloom_opt::rewrite::{
    Control, ControlForm, LoopTest, Looping, Part, ProgramStep, Rewritten, State, Team, TeamBarrier,
    team_program,
};

use crate::common::{buffer, devices, launch_team, read, source};

const LIMIT: u32 = 32_764;
const KERNELS: &str = include_str!("kernels.ptx");

/// Teams for five blocks of 32 threads.
const TEAMS: [Team; 5] = [
    Team { blocks: 1, slots: 5, shared: 0, barrier: TeamBarrier::Block },
    Team { blocks: 5, slots: 1, shared: 0, barrier: TeamBarrier::Grid },
    Team { blocks: 3, slots: 2, shared: 0, barrier: TeamBarrier::Grid },
    Team { blocks: 4, slots: 3, shared: 0, barrier: TeamBarrier::Grid },
    // More blocks than a few, one of which adds to the barrier what the others leave.
    Team { blocks: 19, slots: 1, shared: 0, barrier: TeamBarrier::Grid },
];

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn step(name: &str, blocks: u32, threads: u32) -> ProgramStep {
    ProgramStep { kernel: source(KERNELS, name), grid: [blocks, 1, 1], block: [threads, 1, 1] }
}

fn set(rewritten: &mut Rewritten, at: u32, value: u64) {
    rewritten.header[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn each_step_sees_what_other_blocks_wrote_in_the_step_before_it() {
    let n = 160u32;
    for device in devices() {
        for team in TEAMS {
            for count in [1, 2, 7] {
                // One of the steps has fewer blocks, and so changes only the beginning.
                let narrow = count / 2;
                let steps: Vec<ProgramStep> =
                    (0..count).map(|at| step("ring", if at == narrow { 2 } else { 5 }, 32)).collect();
                let parts: Vec<Part> = (0..count).map(Part::Step).collect();
                let program = team_program(&steps, &parts, team, LIMIT).unwrap();
                let start: Vec<u32> = (0..n).collect();
                let data = [buffer(&device, &words(&start)), buffer(&device, &words(&start))];
                let mut expected = [start.clone(), start.clone()];
                let mut slices = Vec::new();
                for index in 0..count {
                    let (from, to) = (index % 2, (index + 1) % 2);
                    let mut slice = data[from].address().to_le_bytes().to_vec();
                    slice.extend(data[to].address().to_le_bytes());
                    slice.extend(n.to_le_bytes());
                    slice.extend((index as u32).to_le_bytes());
                    slices.push(slice);
                    let changed = if index == narrow { 64 } else { n as usize };
                    for i in 0..changed {
                        let value = expected[from][(i + 32) % n as usize];
                        expected[to][i] = value.wrapping_mul(3).wrapping_add(index as u32);
                    }
                }
                launch_team(&device, &program, team, &slices, None).unwrap();
                for (memory, expected) in data.iter().zip(&expected) {
                    assert_eq!(&numbers(&read(&device, memory)), expected, "{team:?}, {count} steps");
                }
            }
        }
    }
}

#[test]
fn shared_memory_and_barriers_are_those_of_a_block_of_the_step() {
    for device in devices() {
        for team in TEAMS {
            // Every block turns its own 32 words around through shared memory, behind a barrier.
            let steps =
                [step("reverse_each", 5, 32), step("reverse_each", 3, 32), step("reverse_each", 5, 32)];
            let parts = [Part::Step(0), Part::Step(1), Part::Step(2)];
            let program = team_program(&steps, &parts, team, LIMIT).unwrap();
            let data = buffer(&device, &words(&(0..160).collect::<Vec<_>>()));
            let slice = data.address().to_le_bytes().to_vec();
            launch_team(&device, &program, team, &[slice.clone(), slice.clone(), slice], None).unwrap();
            let mut expected: Vec<u32> = (0..160).collect();
            expected[..96].chunks_mut(32).for_each(<[u32]>::reverse);
            assert_eq!(numbers(&read(&device, &data)), expected, "{team:?}");
        }
    }
}

#[test]
fn a_loop_over_a_condition_ends_for_all_blocks_after_the_same_pass() {
    for device in devices() {
        for team in TEAMS {
            // The step that sets the condition is the first of the body, the last, or the only one.
            for order in [&["countdown", "increase_all"][..], &["increase_all", "countdown"]] {
                let steps: Vec<ProgramStep> = order
                    .iter()
                    .map(|&name| if name == "countdown" { step(name, 1, 1) } else { step(name, 5, 32) })
                    .collect();
                let body = (0..steps.len()).map(Part::Step).collect();
                let form = ControlForm::Loop { test_first: true };
                let control = Control { form, test: LoopTest::Condition(0), bodies: vec![body] };
                let mut program = team_program(&steps, &[Part::Control(control)], team, LIMIT).unwrap();
                set(&mut program, Looping::LIMIT, u64::MAX);
                program.header[Looping::INITIAL as usize..][..4].copy_from_slice(&1u32.to_le_bytes());
                let counted = buffer(&device, &[0xff; 8]);
                set(&mut program, Looping::PASSES, counted.address());
                let (left, sum) = (buffer(&device, &words(&[0])), buffer(&device, &words(&[0; 160])));
                let mut state = None;
                // The second launch uses the state that the first one left.
                for (launch, passes) in [6u32, 1, 9].into_iter().enumerate() {
                    device.write(&*left, 0, &passes.to_le_bytes()).unwrap();
                    let memory = state.take().or_else(|| {
                        program.state.map(|state| buffer(&device, &vec![0; 8 * state.words as usize]))
                    });
                    let handle = memory.as_ref().map_or(
                        0,
                        |memory: &std::sync::Arc<dyn gridloom_core::backend::Allocation>| {
                            memory.address() + u64::from(State::condition(0))
                        },
                    );
                    let mut countdown = handle.to_le_bytes().to_vec();
                    countdown.extend(left.address().to_le_bytes());
                    let slices: Vec<Vec<u8>> = order
                        .iter()
                        .map(|&name| match name {
                            "countdown" => countdown.clone(),
                            _ => sum.address().to_le_bytes().to_vec(),
                        })
                        .collect();
                    state = launch_team(&device, &program, team, &slices, memory).unwrap();
                    assert_eq!(read(&device, &counted), u64::from(passes).to_le_bytes(), "{team:?}");
                    let expected = [6, 7, 16][launch];
                    assert_eq!(numbers(&read(&device, &sum)), vec![expected; 160], "{team:?}");
                }
            }
        }
    }
}

#[test]
fn a_step_with_more_blocks_than_the_team_has_room_for_is_refused() {
    let team = Team { blocks: 2, slots: 2, shared: 0, barrier: TeamBarrier::Grid };
    let error = team_program(&[step("ring", 5, 32)], &[Part::Step(0)], team, LIMIT).unwrap_err();
    assert!(error.contains("more blocks than run at once"), "{error}");
}

#[test]
fn more_barriers_than_a_block_has_are_refused() {
    let team = Team { blocks: 1, slots: 16, shared: 0, barrier: TeamBarrier::Block };
    let error = team_program(&[step("reverse_each", 16, 32)], &[Part::Step(0)], team, LIMIT).unwrap_err();
    assert!(error.contains("16 barriers"), "{error}");
}

#[test]
fn a_team_of_one_cluster_has_its_barrier_between_steps() {
    let team = Team { blocks: 4, slots: 2, shared: 0, barrier: TeamBarrier::Cluster };
    let steps = [step("ring", 8, 32), step("reverse_each", 8, 32)];
    let program = team_program(&steps, &[Part::Step(0), Part::Step(1)], team, LIMIT).unwrap();
    let text = program.text();
    assert_eq!(text.matches("barrier.cluster.arrive").count(), 2, "{text}");
    assert_eq!(text.matches("barrier.cluster.wait").count(), 2, "{text}");
    assert!(program.module.target.sm() >= Some(90) && program.state.is_none());
}
