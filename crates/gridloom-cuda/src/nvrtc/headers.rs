//! The headers that CUDA C++ can include: where those of CUDA are, and one of our own.

use super::search::{self, Machine};
use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// The name of the header that declares what kernels set conditions with.
pub(super) const CONDITIONS_NAME: &CStr = c"gridloom_conditions.h";

/// The declarations of CUDA's own headers, word for word, so that a source may hold or include them
/// as well.
pub(super) const CONDITIONS: &CStr = c"typedef unsigned long long cudaGraphConditionalHandle;
extern \"C\" __device__ __cudart_builtin__ void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
";

/// Returns whether a source needs [`CONDITIONS`].
pub(super) fn sets_conditions(source: &str) -> bool {
    source.contains("cudaGraphSetConditional") || source.contains("cudaGraphConditionalHandle")
}

/// A header by which a folder is known to hold those of CUDA, and which tells their version.
const KNOWN_BY: &str = "cuda_runtime_api.h";

/// Where headers of CUDA were looked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Folders {
    /// The folders to include from.
    pub(super) found: Vec<PathBuf>,
    /// The folders that were looked into and not used, with the reason.
    passed_over: Vec<(PathBuf, String)>,
}

impl Folders {
    /// Says where headers are looked for, for errors about a missing one.
    pub(super) fn explain(&self) -> String {
        let mut text = "Headers are looked for in the folders that -I options name".to_owned();
        match self.found.as_slice() {
            [] => text.push_str(", and no headers of CUDA were found."),
            found => {
                let found: Vec<String> = found.iter().map(|folder| folder.display().to_string()).collect();
                text.push_str(&format!(", and in {}.", found.join(" and ")));
            }
        }
        for (folder, reason) in &self.passed_over {
            text.push_str(&format!("\n  {}: {reason}", folder.display()));
        }
        text.push_str(
            "\nInstall a CUDA toolkit or the Python package nvidia-cuda-runtime for those of CUDA, nvidia-cuda-cccl for \
             those of its standard library, or pass their folder: flags([\"-I/usr/local/cuda/include\"]).\n",
        );
        text
    }
}

/// Returns whether a log of the compiler says that it did not find a header.
pub(super) fn is_about_a_missing_header(log: &str) -> bool {
    log.contains("cannot open source file") || log.contains("could not open source file")
}

/// Returns the folders with headers for a compiler: beside it, then those of the environment, of
/// toolkits and of Python packages. Headers of another major version are passed over: they need not
/// compile.
pub(super) fn folders(library: &Path, version: (u32, u32)) -> Folders {
    let variable = |name: &str| std::env::var_os(name);
    folders_on(&Machine { variable: &variable, root: Path::new("/") }, library, version)
}

fn folders_on(machine: &Machine<'_>, library: &Path, version: (u32, u32)) -> Folders {
    let mut folders = Folders::default();
    for candidate in candidates(machine, library) {
        let known_by = candidate.join(KNOWN_BY);
        if !known_by.is_file() {
            if candidate.is_dir() {
                folders.passed_over.push((candidate, format!("it holds no {KNOWN_BY}")));
            }
            continue;
        }
        match std::fs::read(&known_by).ok().and_then(|text| runtime_version(&String::from_utf8_lossy(&text)))
        {
            Some(major) if major != version.0 => {
                let reason = format!(
                    "its headers are those of CUDA {major}, the compiler is of {}.{}",
                    version.0, version.1
                );
                folders.passed_over.push((candidate, reason));
            }
            _ => {
                folders.found = with_standard_library(candidate);
                break;
            }
        }
    }
    folders
}

/// Folders that may hold headers, in the order to try them.
fn candidates(machine: &Machine<'_>, library: &Path) -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    // lib64/libnvrtc.so has its headers in include; nvidia/cuda_nvrtc/lib/libnvrtc.so in
    // nvidia/cuda_runtime/include.
    for above in library.ancestors().skip(2).take(3).filter(|above| above.parent().is_some()) {
        candidates.push(above.join("include"));
        candidates.push(above.join("cuda_runtime").join("include"));
    }
    candidates.extend(search::toolkits(machine).into_iter().flat_map(|toolkit| {
        [
            toolkit.join("include"),
            toolkit.join("targets/x86_64-linux/include"),
            toolkit.join("targets/sbsa-linux/include"),
        ]
    }));
    for nvidia in search::nvidia_packages(machine) {
        candidates.extend(nvidia.into_iter().map(|package| package.join("include")));
    }
    candidates.retain(|candidate| candidate.is_dir());
    let mut seen = Vec::new();
    candidates.retain(|candidate| {
        let new = !seen.contains(candidate);
        seen.push(candidate.clone());
        new
    });
    candidates
}

/// Returns a folder of headers, with that of CUDA's standard library, which is inside it or in a
/// package beside it.
fn with_standard_library(folder: PathBuf) -> Vec<PathBuf> {
    let inside = folder.join("cccl");
    let beside =
        folder.parent().and_then(Path::parent).map(|nvidia| nvidia.join("cuda_cccl").join("include"));
    let mut folders = vec![folder];
    folders.extend([Some(inside), beside].into_iter().flatten().filter(|folder| folder.is_dir()));
    folders
}

/// Returns the major version that `cuda_runtime_api.h` says it is of:
/// `#define CUDART_VERSION  13040`.
fn runtime_version(text: &str) -> Option<u32> {
    let mut words = text.lines().map(str::split_whitespace);
    let number = words.find_map(|mut words| {
        (words.next()? == "#define" && words.next()? == "CUDART_VERSION").then(|| words.next())?
    })?;
    let number: u32 = number.parse().ok()?;
    Some(number / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::search::tests::Fake;

    fn found(fake: &Fake, library: &str, version: (u32, u32)) -> (Vec<String>, String) {
        let folders = fake.with_machine(|machine| folders_on(machine, &fake.path(library), version));
        (folders.found.iter().map(|folder| fake.relative(folder)).collect(), folders.explain())
    }

    const SITE: &str = "venv/lib/python3.12/site-packages/nvidia";

    fn header(fake: &Fake, folder: &str, version: u32) {
        let text = format!("#define CUDART_VERSION  {version}\n");
        std::fs::create_dir_all(fake.path(folder)).unwrap();
        std::fs::write(fake.path(folder).join(KNOWN_BY), text).unwrap();
    }

    #[test]
    fn headers_of_the_toolkit_are_beside_its_compiler() {
        let fake =
            Fake::new("toolkit-headers", &["cuda/lib64/libnvrtc.so.13", "cuda/include/cccl/cuda/std/limits"]);
        header(&fake, "cuda/include", 13040);
        let (found, _) = found(&fake, "cuda/lib64/libnvrtc.so.13", (13, 4));
        assert_eq!(found, ["cuda/include", "cuda/include/cccl"]);
    }

    #[test]
    fn headers_of_the_python_packages_of_cuda_12_are_found() {
        let library = format!("{SITE}/cuda_nvrtc/lib/libnvrtc.so.12");
        let fake = Fake::new("cu12-headers", &[&library, &format!("{SITE}/cuda_nvrtc/include/nvrtc.h")]);
        header(&fake, &format!("{SITE}/cuda_runtime/include"), 12090);
        std::fs::create_dir_all(fake.path(&format!("{SITE}/cuda_cccl/include"))).unwrap();
        let (found, _) = found(&fake, &library, (12, 9));
        assert_eq!(found, [format!("{SITE}/cuda_runtime/include"), format!("{SITE}/cuda_cccl/include")]);
    }

    #[test]
    fn headers_of_the_python_packages_of_cuda_13_are_found() {
        let library = format!("{SITE}/cu13/lib/libnvrtc.so.13");
        let fake = Fake::new("cu13-headers", &[&library]);
        header(&fake, &format!("{SITE}/cu13/include"), 13000);
        assert_eq!(found(&fake, &library, (13, 0)).0, [format!("{SITE}/cu13/include")]);
    }

    #[test]
    fn headers_are_found_elsewhere_where_the_compiler_came_from_the_loader() {
        let fake = Fake::new("loader-headers", &[]).with("VIRTUAL_ENV", "venv");
        header(&fake, &format!("{SITE}/cu13/include"), 13000);
        assert_eq!(found(&fake, "", (13, 0)).0, [format!("{SITE}/cu13/include")]);
        assert_eq!(found(&fake, "", (12, 0)).0, Vec::<String>::new());
    }

    #[test]
    fn headers_of_another_version_are_passed_over_and_named() {
        let fake = Fake::new("version-headers", &["cuda/lib64/libnvrtc.so.13"]);
        header(&fake, "cuda/include", 12040);
        let (found, text) = found(&fake, "cuda/lib64/libnvrtc.so.13", (13, 4));
        assert_eq!(found, Vec::<String>::new());
        assert!(text.contains("no headers of CUDA were found"), "{text}");
        assert!(text.contains("those of CUDA 12, the compiler is of 13.4"), "{text}");
        assert!(text.contains("nvidia-cuda-runtime") && text.contains("-I"), "{text}");
    }

    #[test]
    fn the_version_of_headers_is_read_from_them() {
        assert_eq!(runtime_version("/* */\n#define CUDART_VERSION  13040\n"), Some(13));
        assert_eq!(runtime_version("#define CUDART_VERSION_X 1\n"), None);
    }
}
