//! Writes the kernels of PTX files in every form that the optimiser produces, as input for an
//! assembler.
//!
//! ```sh
//! cargo run -p gridloom-opt --example rewrite -- FOLDER FILE.ptx …
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridloom_opt::rewrite::{
    BatchGroup, Control, ControlForm, Gate, KernelSource, LoopTest, Looping, Part, Predicate, Prefix,
    ProgramStep, Team, TeamBarrier, batch, block_program, prefixed, structured_program, team_program,
};

/// The most bytes of kernel parameters with newer drivers.
const LIMIT: u32 = 32_764;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().ok_or("usage: rewrite FOLDER FILE.ptx …")?;
    std::fs::create_dir_all(&folder)?;
    for path in arguments {
        let text = std::fs::read_to_string(&path)?;
        let Ok(module) = gridloom_ptx::parse(&text) else { continue };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        write_all(&folder, &stem, &Arc::new(module))?;
    }
    Ok(())
}

fn write_all(folder: &Path, stem: &str, module: &Arc<gridloom_ptx::Module>) -> std::io::Result<()> {
    let kernels: Vec<KernelSource> = module
        .entries()
        .filter_map(|(_, function)| KernelSource::new(module.clone(), &function.name))
        .collect();
    let block = [64, 1, 1];
    let write = |form: &str, name: &str, module: Result<String, String>| match module {
        Ok(text) => std::fs::write(folder.join(format!("{stem}.{name}.{form}.ptx")), text),
        Err(_) => Ok(()),
    };
    for kernel in &kernels {
        let name = kernel.name();
        let grids = vec![[2, 1, 1], [1, 1, 1], [3, 2, 1]];
        let groups = [BatchGroup { kernel: kernel.clone(), grids }];
        write("batch", name, batch(&groups, block, LIMIT).map(|rewritten| rewritten.text()))?;
        let steps = vec![ProgramStep { kernel: kernel.clone(), grid: [1; 3], block }; 40];
        write("steps", name, block_program(&steps, None, LIMIT).map(|rewritten| rewritten.text()))?;
        let looping = Looping { test: LoopTest::Condition(0), test_first: true };
        write(
            "loop",
            name,
            block_program(&steps[..1], Some(looping), LIMIT).map(|rewritten| rewritten.text()),
        )?;
        let wide = vec![ProgramStep { kernel: kernel.clone(), grid: [8, 1, 1], block }; 3];
        for (form, blocks, slots, barrier) in [
            ("packed", 1, 8, TeamBarrier::Block),
            ("cluster", 4, 2, TeamBarrier::Cluster),
            ("resident", 8, 1, TeamBarrier::Grid),
            ("alone", 8, 1, TeamBarrier::Thread),
        ] {
            let team = Team { blocks, slots, shared: 128, barrier };
            let parts = [Part::Step(0), Part::Step(1), Part::Step(2)];
            let straight = team_program(&wide, &parts, team, LIMIT);
            write(form, name, straight.map(|rewritten| rewritten.text()))?;
            if barrier != TeamBarrier::Thread {
                let looped = Part::Control(Control {
                    form: ControlForm::Loop { test_first: true },
                    test: LoopTest::Condition(0),
                    bodies: vec![parts.to_vec()],
                });
                let looped = team_program(&wide, &[looped], team, LIMIT);
                write(&format!("{form}-loop"), name, looped.map(|rewritten| rewritten.text()))?;
            }
        }
        let smaller = ProgramStep { kernel: kernel.clone(), grid: [1; 3], block: [32, 1, 1] };
        let mixed = [steps[0].clone(), smaller.clone(), steps[0].clone(), smaller];
        write("mixed", name, block_program(&mixed, None, LIMIT).map(|rewritten| rewritten.text()))?;
        let narrow = [8, 2, 8].map(|blocks| ProgramStep { grid: [blocks, 1, 1], ..wide[0].clone() });
        let team = Team { blocks: 8, slots: 1, shared: 128, barrier: TeamBarrier::Thread };
        let parts = [Part::Step(0), Part::Step(1), Part::Step(2)];
        write("narrow", name, team_program(&narrow, &parts, team, LIMIT).map(|rewritten| rewritten.text()))?;
        let early = Prefix { trigger: true, wait: true, ..Prefix::default() };
        write("early", name, prefixed(kernel, &early).map(|module| module.to_string()))?;
        let unrolled = Prefix { unroll: true, late_wait: true, ..early };
        write("unrolled", name, prefixed(kernel, &unrolled).map(|module| module.to_string()))?;
        let gates = [Gate::Word(Predicate::NonZero), Gate::Latest, Gate::Below].into();
        let decided = Prefix { gates, stored_conditions: true, ..Prefix::default() };
        write("decided", name, prefixed(kernel, &decided).map(|module| module.to_string()))?;
        let branch = Part::Control(Control {
            form: ControlForm::Switch,
            test: LoopTest::Condition(0),
            bodies: vec![vec![Part::Step(1)], vec![Part::Step(2), Part::Step(3)]],
        });
        let nested = Part::Control(Control {
            form: ControlForm::Loop { test_first: false },
            test: LoopTest::Value,
            bodies: vec![vec![Part::Step(0), branch, Part::Step(4)]],
        });
        let program = structured_program(&steps[..5], &[nested], LIMIT);
        write("nested", name, program.map(|rewritten| rewritten.text()))?;
    }
    let steps: Vec<ProgramStep> = kernels
        .iter()
        .map(|kernel| ProgramStep { kernel: kernel.clone(), grid: [1; 3], block })
        .filter(|step| block_program(std::slice::from_ref(step), None, LIMIT).is_ok())
        .collect();
    let twice: Vec<ProgramStep> = steps.iter().chain(&steps).cloned().collect();
    write("straight", "all", block_program(&steps, None, LIMIT).map(|rewritten| rewritten.text()))?;
    write("table", "all", block_program(&twice, None, LIMIT).map(|rewritten| rewritten.text()))
}
