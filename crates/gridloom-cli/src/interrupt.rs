//! Cleanup at Ctrl-C and similar signals: partly written files are removed, and a progress bar is
//! cleared.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once};

use indicatif::{ProgressBar, ProgressDrawTarget};

use crate::signals;

/// What an interrupted command leaves behind.
#[derive(Default)]
struct Unfinished {
    files: Vec<PathBuf>,
    bar: Option<ProgressBar>,
}

static UNFINISHED: Mutex<Unfinished> = Mutex::new(Unfinished { files: Vec::new(), bar: None });

fn unfinished() -> MutexGuard<'static, Unfinished> {
    UNFINISHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Remembers a file that is removed if the command is interrupted.
pub(crate) fn remember_file(path: &Path) {
    watch();
    unfinished().files.push(path.to_owned());
}

/// Forgets a file that has its place now, or is gone.
pub(crate) fn forget_file(path: &Path) {
    unfinished().files.retain(|file| file != path);
}

/// Remembers the bar that is cleared if the command is interrupted.
pub(crate) fn remember_bar(bar: &ProgressBar) {
    watch();
    unfinished().bar = Some(bar.clone());
}

/// Handles interrupts from the first call on. Where that is impossible, an interrupt ends the
/// command without tidying.
fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signals::on_interrupt(|status| {
            let left = std::mem::take(&mut *unfinished());
            if let Some(bar) = left.bar {
                // The main thread goes on until the end, and must not draw the bar again.
                bar.set_draw_target(ProgressDrawTarget::hidden());
                let _ = console::Term::stderr().clear_line();
            }
            for file in left.files {
                let _ = std::fs::remove_file(file);
            }
            std::process::exit(status);
        });
    });
}
