//! The NVRTC library: its functions, and one program being compiled.

use super::NvrtcError;
use super::search::{self, Candidate, Machine};
use crate::driver::loader_reason;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

/// `NVRTC_ERROR_COMPILATION`.
pub(super) const COMPILATION_FAILED: c_int = 6;

type RawProgram = *mut c_void;

/// Declares the functions once: field, exported name, signature. All are in every NVRTC since CUDA
/// 11.
macro_rules! nvrtc_functions {
    ($($name:ident = $symbol:literal: fn($($ty:ty),*) -> $result:ty;)*) => {
        /// The entry points of an opened library.
        pub(super) struct Functions {
            $($name: unsafe extern "C" fn($($ty),*) -> $result,)*
            path: String,
            // The library is closed after the addresses above are gone. The built-ins are kept open
            // for it.
            _library: Library,
            _builtins: Option<Library>,
        }

        impl Functions {
            fn resolve(library: Library, builtins: Option<Library>, path: String) -> Result<Self, String> {
                $(
                    // SAFETY: the name is NVRTC's, and the signature is the one its header gives
                    // it.
                    let $name = unsafe {
                        library.get::<unsafe extern "C" fn($($ty),*) -> $result>($symbol.as_bytes())
                    };
                    let $name = *$name.map_err(|_| concat!("it does not export ", $symbol).to_owned())?;
                )*
                Ok(Self { $($name,)* path, _library: library, _builtins: builtins })
            }
        }
    };
}

nvrtc_functions! {
    version = "nvrtcVersion": fn(*mut c_int, *mut c_int) -> c_int;
    error_string = "nvrtcGetErrorString": fn(c_int) -> *const c_char;
    create_program = "nvrtcCreateProgram":
        fn(*mut RawProgram, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
    destroy_program = "nvrtcDestroyProgram": fn(*mut RawProgram) -> c_int;
    compile_program = "nvrtcCompileProgram": fn(RawProgram, c_int, *const *const c_char) -> c_int;
    get_ptx_size = "nvrtcGetPTXSize": fn(RawProgram, *mut usize) -> c_int;
    get_ptx = "nvrtcGetPTX": fn(RawProgram, *mut c_char) -> c_int;
    add_name_expression = "nvrtcAddNameExpression": fn(RawProgram, *const c_char) -> c_int;
    get_lowered_name = "nvrtcGetLoweredName": fn(RawProgram, *const c_char, *mut *const c_char) -> c_int;
    get_log_size = "nvrtcGetProgramLogSize": fn(RawProgram, *mut usize) -> c_int;
    get_log = "nvrtcGetProgramLog": fn(RawProgram, *mut c_char) -> c_int;
}

impl Functions {
    /// Opens the first usable library among the candidates.
    pub(super) fn find() -> Result<Self, NvrtcError> {
        let variable = |name: &str| std::env::var_os(name);
        let machine = Machine { variable: &variable, root: Path::new("/") };
        let mut attempts = Vec::new();
        for candidate in search::candidates(&machine) {
            let (described, outcome) = Self::try_candidate(&candidate);
            match outcome {
                Ok(functions) => return Ok(functions),
                Err(reason) => attempts.push((described, reason)),
            }
        }
        Err(NvrtcError::Missing { attempts })
    }

    fn try_candidate(candidate: &Candidate) -> (String, Result<Self, String>) {
        match candidate {
            Candidate::Loader(name) => {
                (format!("{name} on the loader's path"), Self::open(Path::new(name), None))
            }
            Candidate::File(path) => {
                let builtins = path.parent().and_then(search::look_into).and_then(|found| found.builtins);
                (path.display().to_string(), Self::open(path, builtins.as_deref()))
            }
            Candidate::Folder(folder) => {
                let outcome = match search::look_into(folder) {
                    Some(found) => Self::open(&found.library, found.builtins.as_deref()),
                    None if folder.is_dir() => Err("it holds no NVRTC".to_owned()),
                    None => Err("no such folder".to_owned()),
                };
                (folder.display().to_string(), outcome)
            }
        }
    }

    fn open(library: &Path, builtins: Option<&Path>) -> Result<Self, String> {
        // NVRTC opens its built-ins by bare name when it compiles; opened first, that name is
        // found.
        let builtins = builtins.and_then(|path| {
            // SAFETY: NVRTC's data library has no initialiser with requirements.
            unsafe { Library::new(path) }.ok()
        });
        // SAFETY: NVRTC's initialisers may run on any thread at any time.
        let opened = unsafe { Library::new(library) }.map_err(|error| loader_reason(&error))?;
        Self::resolve(opened, builtins, library.display().to_string())
    }

    /// Returns the library, as it was opened.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the CUDA version of the compiler.
    pub(super) fn version(&self) -> Result<(u32, u32), NvrtcError> {
        let (mut major, mut minor): (c_int, c_int) = (0, 0);
        // SAFETY: writes two integers that live across the call.
        self.check("nvrtcVersion", unsafe { (self.version)(&mut major, &mut minor) })?;
        Ok((u32::try_from(major).unwrap_or(0), u32::try_from(minor).unwrap_or(0)))
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), NvrtcError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: takes any code, and returns a string of static lifetime.
        let text = unsafe { (self.error_string)(code) };
        let text = if text.is_null() {
            String::new()
        } else {
            // SAFETY: not null, so it is the NUL-terminated string that the function documents.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(NvrtcError::Call { call, code, text })
    }
}

/// One source that is being compiled.
pub(super) struct Program<'a> {
    functions: &'a Functions,
    raw: RawProgram,
}

impl<'a> Program<'a> {
    /// Creates a program from a source, and from headers that are given as texts under their names.
    pub(super) fn new(
        functions: &'a Functions,
        source: &CStr,
        name: &CStr,
        headers: &[(&CStr, &CStr)],
    ) -> Result<Self, NvrtcError> {
        let mut raw = ptr::null_mut();
        let names: Vec<*const c_char> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<*const c_char> = headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let count = c_int::try_from(headers.len()).unwrap_or(0);
        // SAFETY: all strings live across the call, which copies them, and both lists have `count`
        // of them.
        let code = unsafe {
            (functions.create_program)(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                count,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        functions.check("nvrtcCreateProgram", code)?;
        Ok(Self { functions, raw })
    }

    /// Asks for the name that a C++ expression has in the PTX, before the program is compiled.
    pub(super) fn add_name_expression(&self, expression: &CStr) -> Result<(), NvrtcError> {
        // SAFETY: the program is alive, and the string is copied.
        let code = unsafe { (self.functions.add_name_expression)(self.raw, expression.as_ptr()) };
        self.functions.check("nvrtcAddNameExpression", code)
    }

    /// Returns the name that an expression has in the PTX, after the program was compiled.
    pub(super) fn lowered_name(&self, expression: &CStr) -> Result<String, NvrtcError> {
        let mut name = ptr::null();
        // SAFETY: the program is alive, and one pointer is written.
        let code = unsafe { (self.functions.get_lowered_name)(self.raw, expression.as_ptr(), &mut name) };
        self.functions.check("nvrtcGetLoweredName", code)?;
        if name.is_null() {
            return Ok(String::new());
        }
        // SAFETY: not null, so it is a NUL-terminated string that the program owns, which is alive.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    pub(super) fn compile(&self, flags: &[*const c_char]) -> Result<(), NvrtcError> {
        let count = c_int::try_from(flags.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is alive; `flags` holds `count` strings that live across the call.
        let code = unsafe { (self.functions.compile_program)(self.raw, count, flags.as_ptr()) };
        self.functions.check("nvrtcCompileProgram", code)
    }

    pub(super) fn ptx(&self) -> Result<String, NvrtcError> {
        // SAFETY: the pair of functions asks for the size of, and fills, one buffer.
        unsafe {
            self.text(
                ("nvrtcGetPTXSize", self.functions.get_ptx_size),
                ("nvrtcGetPTX", self.functions.get_ptx),
            )
        }
    }

    pub(super) fn log(&self) -> Result<String, NvrtcError> {
        // SAFETY: the pair of functions asks for the size of, and fills, one buffer.
        unsafe {
            self.text(
                ("nvrtcGetProgramLogSize", self.functions.get_log_size),
                ("nvrtcGetProgramLog", self.functions.get_log),
            )
        }
    }

    /// Returns a text that one function measures and another one writes.
    ///
    /// # Safety
    ///
    /// `fill` writes exactly as many bytes as `measure` says.
    unsafe fn text(
        &self,
        measure: (&'static str, unsafe extern "C" fn(RawProgram, *mut usize) -> c_int),
        fill: (&'static str, unsafe extern "C" fn(RawProgram, *mut c_char) -> c_int),
    ) -> Result<String, NvrtcError> {
        let mut size = 0;
        // SAFETY: the program is alive, and one size is written.
        self.functions.check(measure.0, unsafe { (measure.1)(self.raw, &mut size) })?;
        let mut bytes = vec![0u8; size];
        // SAFETY: the buffer has the size that was asked for.
        self.functions.check(fill.0, unsafe { (fill.1)(self.raw, bytes.as_mut_ptr().cast()) })?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
            .trim_end()
            .to_owned()
            + if size > 1 { "\n" } else { "" })
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was made by this library and is destroyed once.
        let _ = unsafe { (self.functions.destroy_program)(&mut self.raw) };
    }
}
