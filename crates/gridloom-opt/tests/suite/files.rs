//! The kernels of the PTX test files, rewritten in every way, leave the same bytes.

use std::path::Path;
use std::sync::Arc;

use gridloom_core::backend::{Allocation, Device};
use gridloom_opt::rewrite::{
    BatchGroup, Gate, KernelSource, LoopTest, Looping, Part, Predicate, Prefix, ProgramStep, Role, Team,
    TeamBarrier, batch, block_program, prefixed, team_program,
};

use crate::common::{buffer, devices, kernel, launch, launch_rewritten, launch_team, read, source};
use crate::ptx_file::{self, Argument, Case, Outcome};

const LIMIT: u32 = 32_764;

/// A case that runs on the CPU and ends well, with the text of its file.
struct Known {
    text: Arc<str>,
    file: String,
    case: Case,
}

fn cases() -> Vec<Known> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gridloom/tests/ptx");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut known = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "ptx")) {
        let text: Arc<str> = std::fs::read_to_string(path).unwrap().into();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for case in ptx_file::parse(&text).unwrap() {
            if matches!(case.outcome, Outcome::Contents(_)) && case.only != Some(ptx_file::Device::Cuda) {
                known.push(Known { text: text.clone(), file: file.clone(), case });
            }
        }
    }
    assert!(known.len() > 100, "{} cases", known.len());
    known
}

/// Returns the arguments of a case in fresh memory: the parameter buffer, and the memory that it
/// names.
fn arguments(
    device: &Arc<dyn Device>,
    source: &KernelSource,
    case: &Case,
) -> (Vec<u8>, Vec<Arc<dyn Allocation>>) {
    let text_module = source.layout();
    let (mut params, mut memory) = (vec![0; source.param_bytes() as usize], Vec::new());
    for (argument, (offset, _)) in case.args.iter().zip(text_module) {
        let bytes = match argument {
            Argument::Scalar(bytes) => bytes.clone(),
            Argument::Buffer(bytes) => {
                let buffer = buffer(device, bytes);
                let address = buffer.address().to_le_bytes().to_vec();
                memory.push(buffer);
                address
            }
        };
        params[offset as usize..offset as usize + bytes.len()].copy_from_slice(&bytes);
    }
    (params, memory)
}

fn contents(device: &Arc<dyn Device>, memory: &[Arc<dyn Allocation>]) -> Vec<Vec<u8>> {
    memory.iter().map(|memory| read(device, memory)).collect()
}

/// Returns what the kernel itself leaves.
fn original(device: &Arc<dyn Device>, known: &Known, source: &KernelSource) -> Vec<Vec<u8>> {
    let case = &known.case;
    let (params, memory) = arguments(device, source, case);
    let kernel = kernel(device, &known.text, &case.kernel).unwrap();
    launch(device, &kernel, (case.grid, case.block, case.shared), &params).unwrap();
    contents(device, &memory)
}

#[test]
fn a_batch_leaves_what_its_kernels_leave() {
    let mut rewritten_cases = 0;
    for device in devices() {
        for known in cases() {
            let case = &known.case;
            let source = source(&known.text, &case.kernel);
            if let Some(reason) = source.obstacle(Role::Batched) {
                assert!(batch_of(&source, &[case.grid], case.block).unwrap_err().contains(reason));
                continue;
            }
            let expected = original(&device, &known, &source);
            // Grids of one shape, and of several.
            for grids in [vec![case.grid; 1], vec![case.grid; 3]] {
                let rewritten = batch_of(&source, &grids, case.block).unwrap();
                let launches: Vec<_> = grids.iter().map(|_| arguments(&device, &source, case)).collect();
                let slices: Vec<Vec<u8>> = launches.iter().map(|(params, _)| params.clone()).collect();
                launch_rewritten(&device, &rewritten, case.shared, &slices)
                    .unwrap_or_else(|error| panic!("{} {}: {error}", known.file, case.kernel));
                for (_, memory) in &launches {
                    assert_eq!(contents(&device, memory), expected, "{} {}", known.file, case.kernel);
                }
            }
            rewritten_cases += 1;
        }
    }
    assert!(rewritten_cases > 150, "{rewritten_cases} cases were batched");
}

fn batch_of(
    source: &KernelSource,
    grids: &[[u32; 3]],
    block: [u32; 3],
) -> Result<gridloom_opt::rewrite::Rewritten, String> {
    batch(&[BatchGroup { kernel: source.clone(), grids: grids.to_vec() }], block, LIMIT)
}

#[test]
fn different_kernels_of_one_block_shape_make_one_batch() {
    for device in devices() {
        let cases = cases();
        let mut at = 0;
        let mut batches = 0;
        while at < cases.len() {
            let block = cases[at].case.block;
            let movable = |known: &&Known| {
                known.case.block == block
                    && known.case.shared == 0
                    && source(&known.text, &known.case.kernel).obstacle(Role::Batched).is_none()
            };
            let group: Vec<&Known> = cases[at..].iter().take(12).filter(movable).collect();
            at += 12;
            if group.len() < 2 {
                continue;
            }
            let sources: Vec<KernelSource> =
                group.iter().map(|known| source(&known.text, &known.case.kernel)).collect();
            let groups: Vec<BatchGroup> = group
                .iter()
                .zip(&sources)
                .map(|(known, kernel)| BatchGroup { kernel: kernel.clone(), grids: vec![known.case.grid] })
                .collect();
            let rewritten = batch(&groups, block, LIMIT).unwrap();
            let launches: Vec<_> = group
                .iter()
                .zip(&sources)
                .map(|(known, source)| arguments(&device, source, &known.case))
                .collect();
            let slices: Vec<Vec<u8>> = launches.iter().map(|(params, _)| params.clone()).collect();
            launch_rewritten(&device, &rewritten, 0, &slices).unwrap();
            for ((known, source), (_, memory)) in group.iter().zip(&sources).zip(&launches) {
                let expected = original(&device, known, source);
                assert_eq!(contents(&device, memory), expected, "{} {}", known.file, known.case.kernel);
            }
            batches += 1;
        }
        assert!(batches > 5, "{batches} batches");
    }
}

#[test]
fn steps_of_one_block_leave_what_the_kernels_leave() {
    let mut rewritten_cases = 0;
    for device in devices() {
        for known in cases().iter().filter(|known| known.case.grid == [1, 1, 1]) {
            let case = &known.case;
            let source = source(&known.text, &case.kernel);
            let step = ProgramStep { kernel: source.clone(), grid: [1; 3], block: case.block };
            if let Some(reason) = source.obstacle(Role::Step) {
                assert!(block_program(&[step], None, LIMIT).unwrap_err().contains(reason));
                continue;
            }
            let expected = original(&device, known, &source);
            for count in [1, 4] {
                let rewritten = block_program(&vec![step.clone(); count], None, LIMIT).unwrap();
                let launches: Vec<_> = (0..count).map(|_| arguments(&device, &source, case)).collect();
                let slices: Vec<Vec<u8>> = launches.iter().map(|(params, _)| params.clone()).collect();
                launch_rewritten(&device, &rewritten, case.shared, &slices)
                    .unwrap_or_else(|error| panic!("{} {}: {error}", known.file, case.kernel));
                for (_, memory) in &launches {
                    assert_eq!(contents(&device, memory), expected, "{} {}", known.file, case.kernel);
                }
            }
            rewritten_cases += 1;
        }
    }
    assert!(rewritten_cases > 100, "{rewritten_cases} cases became steps");
}

/// The teams that have room for so many blocks of so many threads.
fn teams(blocks: u32, block: [u32; 3], shared: u32) -> Vec<Team> {
    let threads = Team::slot_threads(block.iter().map(|&extent| u64::from(extent)).product());
    let shared = shared.next_multiple_of(128);
    let slots = |blocks: u32, slots: u32, barrier| Team { blocks, slots, shared, barrier };
    [slots(1, blocks.max(2), TeamBarrier::Block), slots(blocks.div_ceil(3) + 1, 3, TeamBarrier::Grid)]
        .into_iter()
        .filter(|team| threads * u64::from(team.slots) <= 1024 && team.blocks <= 16)
        .collect()
}

#[test]
fn steps_of_a_team_leave_what_the_kernels_leave() {
    let (mut rewritten_cases, mut refused) = (0, 0);
    for device in devices() {
        for known in cases() {
            let case = &known.case;
            let source = source(&known.text, &case.kernel);
            if source.obstacle(Role::Step).is_some() {
                continue;
            }
            let step = ProgramStep { kernel: source.clone(), grid: case.grid, block: case.block };
            let expected = original(&device, &known, &source);
            for team in teams(case.grid.iter().product(), case.block, case.shared) {
                for count in [2] {
                    let parts: Vec<Part> = (0..count).map(Part::Step).collect();
                    let rewritten = match team_program(&vec![step.clone(); count], &parts, team, LIMIT) {
                        Ok(rewritten) => rewritten,
                        Err(_) => {
                            refused += 1;
                            continue;
                        }
                    };
                    let launches: Vec<_> = (0..count).map(|_| arguments(&device, &source, case)).collect();
                    let slices: Vec<Vec<u8>> = launches.iter().map(|(params, _)| params.clone()).collect();
                    launch_team(&device, &rewritten, team, &slices, None)
                        .unwrap_or_else(|error| panic!("{} {}: {error}", known.file, case.kernel));
                    for (_, memory) in &launches {
                        let found = contents(&device, memory);
                        assert_eq!(found, expected, "{} {} {team:?}", known.file, case.kernel);
                    }
                    rewritten_cases += 1;
                }
            }
        }
    }
    assert!(rewritten_cases > 300 && refused < rewritten_cases / 4, "{rewritten_cases}, {refused} refused");
}

#[test]
fn different_kernels_of_one_block_make_one_program_straight_and_by_a_table() {
    for device in devices() {
        let cases = cases();
        let mut programs = 0;
        for first in (0..cases.len()).step_by(5) {
            let block = cases[first].case.block;
            let fits = |known: &&Known| {
                let case = &known.case;
                let sized = case.block == block || block[1..] == [1, 1] && case.block[1..] == [1, 1];
                case.grid == [1, 1, 1] && case.shared == 0 && sized
            };
            let group: Vec<&Known> = cases[first..].iter().take(5).filter(fits).collect();
            let sources: Vec<KernelSource> =
                group.iter().map(|known| source(&known.text, &known.case.kernel)).collect();
            for order in [vec![0, 1, 2], vec![0, 1, 0, 2, 2, 1, 0]] {
                let order: Vec<usize> = order.into_iter().filter(|&at| at < group.len()).collect();
                if order.len() < 2 {
                    continue;
                }
                let steps: Vec<ProgramStep> = order
                    .iter()
                    .map(|&at| ProgramStep {
                        kernel: sources[at].clone(),
                        grid: [1; 3],
                        block: group[at].case.block,
                    })
                    .collect();
                let Ok(rewritten) = block_program(&steps, None, LIMIT) else { continue };
                let launches: Vec<_> =
                    order.iter().map(|&at| arguments(&device, &sources[at], &group[at].case)).collect();
                let slices: Vec<Vec<u8>> = launches.iter().map(|(params, _)| params.clone()).collect();
                launch_rewritten(&device, &rewritten, 0, &slices).unwrap();
                for (&at, (_, memory)) in order.iter().zip(&launches) {
                    let expected = original(&device, group[at], &sources[at]);
                    let known = group[at];
                    assert_eq!(contents(&device, memory), expected, "{} {}", known.file, known.case.kernel);
                }
                programs += 1;
            }
        }
        assert!(programs > 20, "{programs} programs");
    }
}

#[test]
fn a_loop_of_one_pass_leaves_what_the_kernel_leaves() {
    for device in devices() {
        for known in cases().iter().filter(|known| known.case.grid == [1, 1, 1]) {
            let case = &known.case;
            let source = source(&known.text, &case.kernel);
            let step = ProgramStep { kernel: source.clone(), grid: [1; 3], block: case.block };
            let looping = Looping { test: LoopTest::Count, test_first: true };
            let Ok(mut rewritten) = block_program(&[step], Some(looping), LIMIT) else { continue };
            rewritten.header[Looping::LIMIT as usize..][..8].copy_from_slice(&1u64.to_le_bytes());
            let (params, memory) = arguments(&device, &source, case);
            launch_rewritten(&device, &rewritten, case.shared, &[params]).unwrap();
            assert_eq!(
                contents(&device, &memory),
                original(&device, known, &source),
                "{} {}",
                known.file,
                case.kernel
            );
        }
    }
}

#[test]
fn a_prefixed_kernel_runs_where_its_decision_holds_and_does_nothing_elsewhere() {
    let mut rewritten_cases = 0;
    for device in devices() {
        for known in cases() {
            let case = &known.case;
            let source = source(&known.text, &case.kernel);
            let prefix = Prefix { gates: [Gate::Word(Predicate::Equals(7))].into(), ..Prefix::default() };
            let module = match prefixed(&source, &prefix) {
                Ok(module) => module,
                Err(reason) => {
                    assert!(reason.contains(source.obstacle(Role::Prefixed).unwrap()), "{reason}");
                    continue;
                }
            };
            let kernel = kernel(&device, &module.to_string(), &case.kernel).unwrap();
            let expected = original(&device, &known, &source);
            for decision in [7u32, 8] {
                let (mut params, memory) = arguments(&device, &source, case);
                let before = contents(&device, &memory);
                let word = buffer(&device, &decision.to_le_bytes());
                params.resize(params.len().next_multiple_of(8), 0);
                params.extend(word.address().to_le_bytes());
                launch(&device, &kernel, (case.grid, case.block, case.shared), &params).unwrap();
                let expected = if decision == 7 { &expected } else { &before };
                assert_eq!(&contents(&device, &memory), expected, "{} {}", known.file, case.kernel);
            }
            rewritten_cases += 1;
        }
    }
    assert!(rewritten_cases > 200, "{rewritten_cases} cases");
}

#[test]
fn a_prefixed_kernel_can_get_another_prefix() {
    let mut rewritten_cases = 0;
    for known in cases() {
        let case = &known.case;
        let first = source(&known.text, &case.kernel);
        let prefix = Prefix { gates: [Gate::Word(Predicate::NonZero)].into(), ..Prefix::default() };
        let Ok(module) = prefixed(&first, &prefix) else { continue };
        let second = source(&module.to_string(), &case.kernel);
        let module = prefixed(&second, &prefix).unwrap();
        let text = module.to_string();
        let parsed = gridloom_ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(gridloom_ptx::check(&parsed), [], "{text}");
        for device in devices() {
            let kernel = kernel(&device, &text, &case.kernel).unwrap();
            let expected = original(&device, &known, &first);
            for decisions in [[1u32, 1], [1, 0], [0, 1]] {
                let (mut params, memory) = arguments(&device, &first, case);
                let before = contents(&device, &memory);
                let words = decisions.map(|decision| buffer(&device, &decision.to_le_bytes()));
                params.resize(params.len().next_multiple_of(8), 0);
                words.iter().for_each(|word| params.extend(word.address().to_le_bytes()));
                launch(&device, &kernel, (case.grid, case.block, case.shared), &params).unwrap();
                let expected = if decisions == [1, 1] { &expected } else { &before };
                assert_eq!(&contents(&device, &memory), expected, "{} {}", known.file, case.kernel);
            }
        }
        rewritten_cases += 1;
    }
    assert!(rewritten_cases > 100, "{rewritten_cases} cases");
}

#[test]
fn a_kernel_that_starts_early_waits_first() {
    for known in cases() {
        let source = source(&known.text, &known.case.kernel);
        let prefix = Prefix { trigger: true, wait: true, ..Prefix::default() };
        let Ok(module) = prefixed(&source, &prefix) else { continue };
        let text = module.to_string();
        let (_, entry) = module.entry(&known.case.kernel).unwrap();
        let body = entry.body.as_ref().unwrap();
        let first = |at: usize| gridloom_ptx::instruction_text(&module, entry, &body.instructions[at]);
        assert_eq!([first(0), first(1)], ["griddepcontrol.launch_dependents", "griddepcontrol.wait"]);
        assert!(!text.contains(".nc"), "{text}");
        assert!(module.target.sm() >= Some(90));
        assert_eq!(gridloom_ptx::check(&gridloom_ptx::parse(&text).unwrap()), []);
    }
}

#[test]
fn a_kernel_keeps_its_name_where_the_new_module_has_functions_of_that_name() {
    let entry = |name: &str| {
        format!(
            ".visible .entry {name}(.param .b64 h) {{ .reg .b64 %h; ld.param.b64 %h, [h]; call f; \
             {{ .param .b64 a; .param .b32 v; st.param.b64 [a], %h; st.param.b32 [v], 1; \
             call cudaGraphSetConditional, (a, v); }} ret; }}\n"
        )
    };
    let names = ["set_condition", "m0_f"];
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n\
         .func f() {{ ret; }}\n{}{}",
        entry(names[0]),
        entry(names[1])
    );
    for name in names {
        let prefix = Prefix { stored_conditions: true, ..Prefix::default() };
        let module = prefixed(&source(&text, name), &prefix).unwrap();
        assert!(module.entry(name).is_some());
        let mut found: Vec<&str> = module.symbols.iter().map(gridloom_ptx::Symbol::name).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), module.symbols.len(), "{module}");
    }
}
