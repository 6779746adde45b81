//! `gridloom demo`: demonstrations. Each checks its result on the host.

mod bisect;
mod compare;
mod heat;
mod life;
mod poisson;
mod switch;

use gridloom::{Device, Graph, GraphSaver, Result};
use serde_json::json;

use crate::args::{Demo, Program};
use crate::files::Destination;
use crate::image::Image;
use crate::output::say;
use crate::terminal::Terminal;
use crate::{Failure, files, output, pick, progress};

/// Rows of values that a live picture has at most.
const ROWS: usize = 48;
/// Columns of the number before a line, and the space after it.
const LABEL: usize = 9;
/// Pictures that are shown of one run.
const FRAMES: u32 = 10;

type Checked<T> = std::result::Result<T, Failure>;

/// A demonstration on a device: a graph over memory with names.
trait Scene {
    /// Returns the graph. One launch makes as many passes as were asked for.
    fn graph(&self) -> &Graph;

    /// Returns the graph with its inputs and outputs, to be saved.
    fn saver(&self) -> Result<GraphSaver>;

    /// Puts the memory into its first state.
    fn begin(&self) -> Result<()>;

    /// Sets how many passes the next launches make.
    fn set_passes(&self, passes: u32) -> Result<()>;

    /// Returns the present state as a picture.
    fn picture(&self) -> Result<Image>;

    /// Compares the state after so many passes with the host's own, and says how far off it is.
    fn check(&self, passes: u32) -> Checked<String>;
}

/// What is known of a demonstration before it is built.
struct Facts {
    /// The passes unless said otherwise. `None` if there are none to choose.
    passes: Option<u32>,
    /// The size unless said otherwise, and the largest one. `None` if there is none to choose.
    size: Option<(u32, u32)>,
    /// Whether pictures follow each other on new lines, and are not drawn over.
    scrolls: bool,
    build: fn(&Device, u32, u32) -> Result<Box<dyn Scene>>,
}

impl Program {
    fn facts(self) -> Facts {
        match self {
            Program::Heat => {
                Facts { passes: Some(50), size: Some((32, 1 << 24)), scrolls: true, build: heat::build }
            }
            Program::Life => {
                Facts { passes: Some(200), size: Some((64, 4096)), scrolls: false, build: life::build }
            }
            Program::Bisect => Facts { passes: Some(20), size: None, scrolls: true, build: bisect::build },
            Program::Switch => Facts { passes: None, size: None, scrolls: true, build: switch::build },
            Program::Poisson => {
                Facts { passes: Some(2000), size: Some((64, 4096)), scrolls: false, build: poisson::build }
            }
        }
    }
}

/// Runs the demonstration that was asked for.
pub(crate) fn run(demo: &Demo) -> Result<(), Failure> {
    let facts = demo.program.facts();
    let size = match (demo.size, facts.size) {
        (Some(_), None) => return Err("--size is for the heat, life and poisson demonstrations".into()),
        (Some(size), Some((_, most))) if size > most => {
            return Err(format!("--size {size}: at most {most}").into());
        }
        (size, usual) => size.or(usual.map(|(usual, _)| usual)).unwrap_or(0),
    };
    if demo.passes.is_some() && facts.passes.is_none() {
        return Err("--passes is for the heat, life, bisect and poisson demonstrations".into());
    }
    let passes = demo.passes.or(facts.passes).unwrap_or(switch::CASES.len() as u32);
    if demo.compare {
        return compare::run(demo, &facts, size, passes);
    }
    let outputs = Outputs::open(demo)?;
    if !outputs.is_empty() {
        output::outlive_reader();
    }
    let device = pick::device(&demo.device, None, pick::Limits::default())?;
    let scene = (facts.build)(&device, size, passes)?;
    if !demo.json {
        say!("on {}", device.name())?;
    }
    let film = play(demo, &facts, &*scene, &device, passes)?;
    let verdict = scene.check(passes)?;
    scene.begin()?;
    scene.set_passes(passes_of_a_launch(demo.passes, &facts))?;
    let written = outputs.write(&*scene, &film)?;
    if demo.json {
        return say!(
            "{:#}",
            json!({ "device": device.name(), "passes": passes, "result": verdict, "written": written })
        );
    }
    say!("{verdict}")?;
    written.iter().try_for_each(|path| say!("wrote {path}"))
}

/// Returns a demonstration as the contents of a file, ready to be launched.
pub(crate) fn saved(program: Program, device: &Device) -> Result<Vec<u8>> {
    let facts = program.facts();
    let passes = passes_of_a_launch(None, &facts);
    let scene = (facts.build)(device, facts.size.map_or(0, |(usual, _)| usual), passes)?;
    scene.begin()?;
    scene.set_passes(passes)?;
    scene.saver()?.to_bytes()
}

/// Returns how many passes one launch of a saved demonstration makes.
fn passes_of_a_launch(wanted: Option<u32>, facts: &Facts) -> u32 {
    wanted.or(facts.passes).unwrap_or(1)
}

/// The files to write. They are opened before the demonstration runs, which may take long.
struct Outputs {
    dot: Option<Destination>,
    save: Option<Destination>,
    svg: Option<Destination>,
    png: Option<Destination>,
}

impl Outputs {
    fn open(demo: &Demo) -> Checked<Self> {
        let [dot, save, svg, png] =
            [&demo.dot, &demo.save, &demo.svg, &demo.png].map(|path| files::open(path.as_deref()));
        let outputs = Outputs { dot: dot?, save: save?, svg: svg?, png: png? };
        let Outputs { dot, save, svg, png } = &outputs;
        files::refuse_two_writers([dot, save, svg, png].into_iter().flatten())?;
        Ok(outputs)
    }

    fn is_empty(&self) -> bool {
        let Outputs { dot, save, svg, png } = self;
        [dot, save, svg, png].into_iter().all(Option::is_none)
    }

    /// Writes the graph in its first state, and the picture. Returns the names of the files.
    fn write(self, scene: &dyn Scene, film: &Image) -> Checked<Vec<String>> {
        let mut written = Vec::new();
        let mut write = |destination: Option<Destination>, bytes: &dyn Fn() -> Checked<Vec<u8>>| {
            if let Some(destination) = destination {
                let name = destination.path().display().to_string();
                destination.write(&bytes()?)?;
                written.push(name);
            }
            Ok::<_, Failure>(())
        };
        write(self.dot, &|| Ok(scene.graph().to_dot().into_bytes()))?;
        write(self.save, &|| Ok(scene.saver()?.to_bytes()?))?;
        write(self.svg, &|| Ok(film.to_svg().into_bytes()))?;
        write(self.png, &|| Ok(film.to_png()?))?;
        Ok(written)
    }
}

/// Launches the graph in parts and shows the state after each. Returns the picture for files: the
/// last one, or all of them below each other if they scroll.
fn play(demo: &Demo, facts: &Facts, scene: &dyn Scene, device: &Device, passes: u32) -> Checked<Image> {
    let terminal = Terminal::stdout();
    let stream = device.stream()?;
    let executable = scene.graph().instantiate()?;
    // A picture that is drawn over itself moves; one that scrolls has few lines.
    let moves = !facts.scrolls && terminal.rewrites && !demo.json;
    let frames = if moves { 10 * FRAMES } else { FRAMES }.min(passes);
    let rows = ROWS.min(2 * terminal.rows.saturating_sub(4)).max(2);
    let bar = if moves || demo.json {
        indicatif::ProgressBar::hidden()
    } else {
        progress::bar(passes.into(), "passes")
    };
    let mut film = Image::default();
    scene.begin()?;
    let mut done = 0;
    for frame in 1..=frames {
        let target = (u64::from(passes) * u64::from(frame) / u64::from(frames)) as u32;
        scene.set_passes(target - done)?;
        executable.launch(&stream)?;
        stream.synchronize()?;
        done = target;
        bar.set_position(done.into());
        let picture = scene.picture()?;
        if facts.scrolls {
            film.append(&picture);
        }
        if demo.json {
            continue;
        }
        if facts.scrolls {
            let line = picture.lines(terminal, LABEL, 1).concat();
            bar.suspend(|| say!("{done:>8} {line}"))?;
        } else if moves || frame == frames {
            let lines = picture.lines(terminal, 0, rows);
            let back = if moves && frame > 1 { format!("\x1b[{}A", lines.len() + 1) } else { String::new() };
            output::write(&format!("{back}{}\n", lines.join("\n")))?;
            say!("{done} of {passes} passes")?;
        }
        if facts.scrolls {
            continue;
        }
        film = picture;
    }
    bar.finish_and_clear();
    Ok(film)
}

/// Names the check and fails where it does not hold.
fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(format!("wrong result: {what}").into()) }
}

/// Returns the greatest difference. A NaN counts as infinity.
fn greatest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |worst, d| if d.is_nan() { f32::INFINITY } else { worst.max(d) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_a_number_is_infinitely_far() {
        assert_eq!(greatest_difference(&[f32::NAN, 1.0], &[0.0, 1.0]), f32::INFINITY);
        assert_eq!(greatest_difference(&[1.0, 2.5], &[1.0, 2.0]), 0.5);
    }
}
