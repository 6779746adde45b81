//! Where the NVRTC library may be: environment, loader, toolkits, and Python packages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable that names the NVRTC library or the folder it is in.
pub const NVRTC_VARIABLE: &str = "GRIDLOOM_NVRTC";

/// A library, or a folder that may hold one, to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Candidate {
    /// A name for the system's loader to find.
    Loader(&'static str),
    /// A library file.
    File(PathBuf),
    /// A folder that may hold the library.
    Folder(PathBuf),
}

/// The parts of the machine that the search reads, so that tests can replace them.
pub(super) struct Machine<'a> {
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The folder that stands for the root of the file system.
    pub(super) root: &'a Path,
}

impl Machine<'_> {
    fn folder_in(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn under_root(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

/// Names for the loader, newest first.
const LOADER_NAMES: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
} else {
    &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
};

/// Sub-folders of a toolkit that hold libraries.
const TOOLKIT_FOLDERS: &[&str] = &[
    "lib64",
    "lib",
    "lib/x86_64-linux-gnu",
    "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib",
    "bin",
    "bin/x64",
];

/// Returns the candidates in the order to try them. One that [`NVRTC_VARIABLE`] names is the only
/// one.
pub(super) fn candidates(machine: &Machine<'_>) -> Vec<Candidate> {
    if let Some(path) = machine.folder_in(NVRTC_VARIABLE) {
        return vec![if path.is_dir() { Candidate::Folder(path) } else { Candidate::File(path) }];
    }
    let mut candidates = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(toolkit) = machine.folder_in(variable) {
            toolkit_folders(&toolkit, &mut candidates);
        }
    }
    candidates.extend(LOADER_NAMES.iter().map(|name| Candidate::Loader(name)));
    for toolkit in default_toolkits(machine) {
        toolkit_folders(&toolkit, &mut candidates);
    }
    for site in site_packages(machine) {
        python_folders(&site, &mut candidates);
    }
    candidates
}

fn toolkit_folders(toolkit: &Path, candidates: &mut Vec<Candidate>) {
    candidates.extend(TOOLKIT_FOLDERS.iter().map(|folder| Candidate::Folder(toolkit.join(folder))));
}

/// Returns the folders of toolkits: those of the environment, then the usual ones.
pub(super) fn toolkits(machine: &Machine<'_>) -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|variable| machine.folder_in(variable));
    named.chain(default_toolkits(machine)).collect()
}

fn default_toolkits(machine: &Machine<'_>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // /usr/local/cuda first: it is the link the administrator chose.
    let mut local = entries(&machine.under_root("usr/local"), |name| name.starts_with("cuda"));
    local.sort_by_key(|path| (path.file_name().is_none_or(|name| name != "cuda"), version_of(path)));
    found.append(&mut local);
    found.push(machine.under_root("opt/cuda"));
    if let Some(conda) = machine.folder_in("CONDA_PREFIX") {
        found.push(conda);
    }
    if let Some(programs) = machine.folder_in("ProgramFiles") {
        let toolkits = programs.join("NVIDIA GPU Computing Toolkit").join("CUDA");
        let mut versions = entries(&toolkits, |name| name.starts_with('v'));
        versions.sort_by_key(|path| version_of(path));
        found.append(&mut versions);
    }
    found
}

/// Returns the numbers in a folder's name, so that newer versions sort first.
fn version_of(path: &Path) -> std::cmp::Reverse<Vec<u32>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::cmp::Reverse(
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect(),
    )
}

/// Returns the folders where Python keeps packages: the active environment, that of the `python3`
/// that a shell would run, the user's, those of pyenv, the system's. No program is run to find out.
fn site_packages(machine: &Machine<'_>) -> Vec<PathBuf> {
    let mut sites = Vec::new();
    let mut add_prefix = |prefix: PathBuf| {
        sites.push(prefix.join("Lib").join("site-packages"));
        for lib in ["lib", "lib64"] {
            for python in entries(&prefix.join(lib), |name| name.starts_with("python3")) {
                sites.push(python.join("site-packages"));
                sites.push(python.join("dist-packages"));
            }
        }
    };
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = machine.folder_in(variable) {
            add_prefix(prefix);
        }
    }
    python_on_path(machine).into_iter().for_each(&mut add_prefix);
    if let Some(home) = machine.folder_in("HOME") {
        add_prefix(home.join(".local"));
    }
    let pyenv = machine.folder_in("PYENV_ROOT");
    let pyenv = pyenv.or_else(|| Some(machine.folder_in("HOME")?.join(".pyenv")));
    pyenv.map_or(Vec::new(), |root| pyenv_versions(machine, &root)).into_iter().for_each(&mut add_prefix);
    add_prefix(machine.under_root("usr/local"));
    add_prefix(machine.under_root("usr"));
    if let Some(paths) = (machine.variable)("PYTHONPATH") {
        sites.extend(std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()));
    }
    let mut known = std::collections::HashSet::new();
    sites.retain(|site| site.is_dir() && known.insert(site.clone()));
    sites
}

/// Returns the environments of the first `python3` on the path: where it lies, and where it lies
/// after its links are followed. The shims of pyenv stand for the versions that pyenv has.
fn python_on_path(machine: &Machine<'_>) -> Vec<PathBuf> {
    let path = (machine.variable)("PATH").unwrap_or_default();
    let name = if cfg!(windows) { "python.exe" } else { "python3" };
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let Some(python) = folders.map(|folder| folder.join(name)).find(|python| python.is_file()) else {
        return Vec::new();
    };
    // `bin` lies in the environment on Unix. On Windows the program itself does.
    let environment =
        |python: &Path| python.ancestors().nth(if cfg!(windows) { 1 } else { 2 }).map(Path::to_owned);
    if python.parent().and_then(Path::file_name).is_some_and(|folder| folder == "shims") {
        return environment(&python).map_or(Vec::new(), |root| pyenv_versions(machine, &root));
    }
    let linked = python.canonicalize().ok();
    [Some(python), linked].into_iter().flatten().filter_map(|python| environment(&python)).collect()
}

/// Returns the environments of pyenv: the versions that were selected, then the others, newest
/// first.
fn pyenv_versions(machine: &Machine<'_>, root: &Path) -> Vec<PathBuf> {
    let selected = (machine.variable)("PYENV_VERSION")
        .map(|versions| versions.to_string_lossy().into_owned())
        .or_else(|| std::fs::read_to_string(root.join("version")).ok())
        .unwrap_or_default();
    let selected: Vec<&str> = selected.split([':', '\n']).map(str::trim).collect();
    let mut versions = entries(&root.join("versions"), |_| true);
    versions.sort_by_key(|version| {
        let name = version.file_name().unwrap_or_default();
        (selected.iter().position(|&wanted| name == wanted).unwrap_or(selected.len()), version_of(version))
    });
    versions
}

/// Returns the folders of a package. NVIDIA's wheels put things under a folder of each package
/// (CUDA 12) or under `nvidia/cu13`. These are the folders for one package, newest first.
fn package_folders(site: &Path, package: &str) -> Vec<PathBuf> {
    let wanted = |name: &str| name == package || name.strip_prefix("cu").is_some_and(version_like);
    let mut packages = entries(&site.join("nvidia"), wanted);
    packages.sort_by_key(|path| version_of(path));
    packages
}

/// Returns the folders that hold the headers of the runtime in each Python environment.
pub(super) fn nvidia_packages(machine: &Machine<'_>) -> Vec<Vec<PathBuf>> {
    site_packages(machine).iter().map(|site| package_folders(site, "cuda_runtime")).collect()
}

fn python_folders(site: &Path, candidates: &mut Vec<Candidate>) {
    for package in package_folders(site, "cuda_nvrtc") {
        candidates.extend(["lib", "bin", "bin/x86_64"].map(|folder| Candidate::Folder(package.join(folder))));
    }
}

fn version_like(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn entries(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = listing
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// What a folder holds of NVRTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The compiler.
    pub(super) library: PathBuf,
    /// The built-in definitions it opens by name, which must be loaded before it to be found.
    pub(super) builtins: Option<PathBuf>,
}

/// Looks into one folder.
pub(super) fn look_into(folder: &Path) -> Option<Found> {
    let newest = |wanted: &dyn Fn(&str) -> bool| {
        let mut files = entries(folder, wanted);
        files.sort_by_key(|path| version_of(path));
        files.into_iter().next()
    };
    let library = newest(&|name| {
        name.starts_with("libnvrtc.so")
            || (name.starts_with("nvrtc64_") && name.ends_with(".dll") && !name.contains(".alt."))
    })?;
    let builtins = newest(&|name| {
        name.starts_with("libnvrtc-builtins.so")
            || (name.starts_with("nvrtc-builtins64_") && name.ends_with(".dll"))
    });
    Some(Found { library, builtins })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A made-up file system in a temporary folder.
    pub(in crate::nvrtc) struct Fake {
        root: PathBuf,
        variables: Vec<(&'static str, PathBuf)>,
    }

    impl Fake {
        pub(in crate::nvrtc) fn new(name: &str, files: &[&str]) -> Self {
            let root = std::env::temp_dir().join(format!("gridloom-nvrtc-{name}-{}", std::process::id()));
            for file in files {
                let path = root.join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            std::fs::create_dir_all(&root).unwrap();
            Self { root, variables: Vec::new() }
        }

        pub(in crate::nvrtc) fn with(mut self, variable: &'static str, path: &str) -> Self {
            let path = self.root.join(path);
            self.variables.push((variable, path));
            self
        }

        /// Returns the library files in the order in which they would be tried.
        fn libraries(&self) -> Vec<String> {
            self.with_machine(candidates)
                .into_iter()
                .filter_map(|candidate| match candidate {
                    Candidate::Folder(folder) => look_into(&folder).map(|found| found.library),
                    Candidate::File(file) => Some(file),
                    Candidate::Loader(_) => None,
                })
                .map(|path| self.relative(&path))
                .collect()
        }

        pub(in crate::nvrtc) fn with_machine<T>(&self, look: impl FnOnce(&Machine<'_>) -> T) -> T {
            let variable = |name: &str| {
                let found = self.variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, path)| path.clone().into_os_string())
            };
            look(&Machine { variable: &variable, root: &self.root })
        }

        pub(in crate::nvrtc) fn path(&self, path: &str) -> PathBuf {
            if path.is_empty() { PathBuf::new() } else { self.root.join(path) }
        }

        pub(in crate::nvrtc) fn relative(&self, path: &Path) -> String {
            path.strip_prefix(&self.root).unwrap().to_string_lossy().replace('\\', "/")
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn a_toolkit_named_by_the_environment_comes_before_installed_ones() {
        let fake =
            Fake::new("toolkit", &["mine/lib64/libnvrtc.so.12", "usr/local/cuda/lib64/libnvrtc.so.13"])
                .with("CUDA_HOME", "mine");
        assert_eq!(fake.libraries(), ["mine/lib64/libnvrtc.so.12", "usr/local/cuda/lib64/libnvrtc.so.13"]);
    }

    #[test]
    fn the_chosen_toolkit_comes_before_versioned_ones_and_newer_before_older() {
        let fake = Fake::new(
            "versions",
            &[
                "usr/local/cuda-12.4/lib64/libnvrtc.so.12",
                "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
                "usr/local/cuda/lib64/libnvrtc.so.12",
            ],
        );
        assert_eq!(
            fake.libraries(),
            [
                "usr/local/cuda/lib64/libnvrtc.so.12",
                "usr/local/cuda-13.0/lib64/libnvrtc.so.13",
                "usr/local/cuda-12.4/lib64/libnvrtc.so.12"
            ]
        );
    }

    #[test]
    fn python_packages_of_the_active_environment_are_found() {
        let fake = Fake::new(
            "python",
            &[
                "venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libnvrtc.so.9",
            ],
        )
        .with("VIRTUAL_ENV", "venv");
        assert_eq!(
            fake.libraries(),
            [
                "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                "venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
            ]
        );
    }

    #[test]
    fn the_users_own_python_packages_are_found() {
        let library = "home/.local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
        assert_eq!(Fake::new("user", &[library]).with("HOME", "home").libraries(), [library]);
    }

    #[test]
    fn packages_of_the_python_on_the_path_are_found_where_it_lies_and_where_it_leads() {
        let of_python =
            |root: &str| format!("{root}/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
        let (own, base) = (of_python("venv"), of_python("opt/python"));
        let fake = Fake::new("path", &[&own, &base, "opt/python/bin/python3.12", "venv/bin/activate"])
            .with("PATH", "venv/bin");
        assert_eq!(fake.libraries(), [""; 0], "there is no python3 on the path");
        #[cfg(unix)]
        {
            let (to, at) = (fake.path("opt/python/bin/python3.12"), fake.path("venv/bin/python3"));
            std::os::unix::fs::symlink(to, at).unwrap();
            assert_eq!(fake.libraries(), [own, base]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn packages_of_the_version_that_pyenv_selects_come_before_those_of_others() {
        let of = |version: &str| {
            format!("pyenv/versions/{version}/lib/python3/site-packages/nvidia/cu13/lib/libnvrtc.so.13")
        };
        let (old, middle, new) = (of("3.9.1"), of("3.10.2"), of("3.12.0"));
        let files = [&*old, &middle, &new, "pyenv/shims/python3"];
        let shims = Fake::new("shims", &files).with("PATH", "pyenv/shims");
        std::fs::write(shims.path("pyenv/version"), "3.10.2\n").unwrap();
        assert_eq!(shims.libraries(), [&*middle, &new, &old]);
        // Without shims on the path, in its usual place.
        let files = files.map(|file| file.replace("pyenv/", "home/.pyenv/"));
        let usual = Fake::new("pyenv", &files.each_ref().map(String::as_str)).with("HOME", "home");
        assert_eq!(usual.libraries(), [2, 1, 0].map(|file| files[file].clone()));
    }

    #[test]
    fn a_library_named_outright_is_the_only_place() {
        let fake = Fake::new("outright", &["here/libnvrtc.so.13", "usr/local/cuda/lib64/libnvrtc.so.13"]);
        let fake = fake.with(NVRTC_VARIABLE, "here");
        assert_eq!(fake.libraries(), ["here/libnvrtc.so.13"]);
    }

    #[test]
    fn the_newest_library_of_a_folder_comes_with_its_builtins() {
        let fake = Fake::new(
            "pair",
            &[
                "lib/libnvrtc.so.12",
                "lib/libnvrtc.so.13",
                "lib/libnvrtc-builtins.so.13.4",
                "lib/libnvrtc_static.a",
            ],
        );
        let found = look_into(&fake.root.join("lib")).unwrap();
        assert!(found.library.ends_with("libnvrtc.so.13"));
        assert!(found.builtins.unwrap().ends_with("libnvrtc-builtins.so.13.4"));
    }

    #[test]
    fn a_folder_without_the_library_gives_nothing() {
        let fake = Fake::new("none", &["lib/libcudart.so.13"]);
        assert_eq!(look_into(&fake.root.join("lib")), None);
    }
}
