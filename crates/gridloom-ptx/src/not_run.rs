//! The PTX that exists and that Gridloom does not run on the CPU device yet: one table, for
//! messages and documents.

/// A family of instructions that the CPU device does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRun {
    /// What the instructions are for.
    pub family: &'static str,
    /// The instructions: a mnemonic, or a mnemonic with modifiers that an instruction of the family
    /// has among its own.
    pub instructions: &'static [&'static str],
    /// An instruction of the family, whole.
    pub example: &'static str,
}

/// The newest version of PTX whose instructions are known: what is in neither this table nor the
/// model does not exist in it.
pub const NEWEST_PTX: (u32, u32) = (9, 2);

/// The table.
pub const NOT_RUN: &[NotRun] = &[
    NotRun {
        family: "tensor cores and matrices",
        instructions: &[
            "mma",
            "wmma",
            "wgmma",
            "tcgen05",
            "ldmatrix",
            "stmatrix",
            "movmatrix",
            "spdecompress",
        ],
        example: "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
    },
    NotRun {
        family: "textures and surfaces",
        instructions: &["tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"],
        example: "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];",
    },
    NotRun {
        family: "bulk, tensor and multicast memory operations",
        instructions: &[
            "cp.async.bulk",
            "cp.reduce.async.bulk",
            "st.async",
            "st.bulk",
            "red.async",
            "prefetch.tensormap",
            "tensormap",
            "multimem",
        ],
        example: "cp.async.bulk.commit_group;",
    },
    NotRun {
        family: "clusters of blocks",
        instructions: &["mapa", "clusterlaunchcontrol"],
        example: "mapa.u64 %rd1, %rd2, %r1;",
    },
    NotRun {
        family: "video",
        instructions: &[
            "vadd",
            "vsub",
            "vabsdiff",
            "vmin",
            "vmax",
            "vshl",
            "vshr",
            "vmad",
            "vset",
            "vadd2",
            "vsub2",
            "vavrg2",
            "vabsdiff2",
            "vmin2",
            "vmax2",
            "vset2",
            "vadd4",
            "vsub4",
            "vavrg4",
            "vabsdiff4",
            "vmin4",
            "vmax4",
            "vset4",
        ],
        example: "vadd.u32.u32.u32 %r1, %r2.b0, %r3.b1;",
    },
    NotRun {
        family: "arithmetic on four bytes, of mixed precision, and saturating on packed or unsigned integers",
        instructions: &[
            "add.sat.u32",
            "add.sat.u16x2",
            "add.sat.s16x2",
            "add.u8x4",
            "add.s8x4",
            "sub.u8x4",
            "sub.s8x4",
            "min.u8x4",
            "min.s8x4",
            "max.u8x4",
            "max.s8x4",
            "neg.s8x4",
            "add.f32.f16",
            "add.f32.bf16",
            "sub.f32.f16",
            "sub.f32.bf16",
            "fma.f32.f16",
            "fma.f32.bf16",
            "fma.oob",
        ],
        example: "add.f32.bf16 %f1, %h1, %f2;",
    },
    NotRun {
        family: "conversions with random bits, a scale, or of fixed-point numbers",
        instructions: &["cvt.rs", "cvt.scaled::n2::ue8m0", "cvt.s2f6x2"],
        example: "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;",
    },
];

/// The modifiers that can follow a mnemonic of the table directly, up to `::`. Mnemonics that are
/// not listed take too many.
const FIRST_MODIFIERS: &[(&str, &[&str])] = &[
    ("mma", &["sync", "sp"]),
    ("wmma", &["load", "store", "mma"]),
    ("wgmma", &["fence", "mma_async", "commit_group", "wait_group"]),
    (
        "tcgen05",
        &[
            "alloc",
            "dealloc",
            "relinquish_alloc_permit",
            "ld",
            "st",
            "wait",
            "cp",
            "shift",
            "mma",
            "commit",
            "fence",
        ],
    ),
    ("ldmatrix", &["sync"]),
    ("stmatrix", &["sync"]),
    ("movmatrix", &["sync"]),
    ("istypep", &["texref", "samplerref", "surfref"]),
    ("tensormap", &["replace", "cp_fenceproxy"]),
    ("multimem", &["ld_reduce", "st", "red", "cp"]),
    ("clusterlaunchcontrol", &["try_cancel", "query_cancel"]),
];

impl NotRun {
    /// Returns the first modifier of an instruction of the table if no instruction has it there.
    pub(crate) fn unknown_modifier<'a>(mnemonic: &str, modifiers: &'a [String]) -> Option<&'a str> {
        let (_, allowed) = FIRST_MODIFIERS.iter().find(|(known, _)| *known == mnemonic)?;
        modifiers.first().map(String::as_str).filter(|first| {
            let (word, _) = first.split_once("::").unwrap_or((first, ""));
            !allowed.contains(&word)
        })
    }

    /// Returns the family of an instruction, if it is one of the table.
    ///
    /// ```
    /// use gridloom_ptx::NotRun;
    ///
    /// let family = NotRun::find("mma", &["sync", "aligned", "m16n8k8"]);
    /// assert_eq!(family.unwrap().family, "tensor cores and matrices");
    /// assert_eq!(NotRun::find("add", &["u32"]), None);
    /// ```
    #[must_use]
    pub fn find(mnemonic: &str, modifiers: &[impl AsRef<str>]) -> Option<&'static NotRun> {
        let is = |pattern: &&str| {
            let mut words = pattern.split('.');
            words.next() == Some(mnemonic)
                && words.all(|word| modifiers.iter().any(|modifier| modifier.as_ref() == word))
        };
        NOT_RUN.iter().find(|family| family.instructions.iter().any(is))
    }

    /// Returns all mnemonics of the table.
    pub(crate) fn mnemonics() -> impl Iterator<Item = &'static str> {
        let patterns = NOT_RUN.iter().flat_map(|family| family.instructions);
        patterns.map(|pattern| pattern.split_once('.').map_or(*pattern, |(mnemonic, _)| mnemonic))
    }

    /// Returns the table in Markdown, as the documents have it.
    ///
    /// ```
    /// assert!(gridloom_ptx::NotRun::markdown().contains("| textures and surfaces | `tex`, `tld4`"));
    /// ```
    #[must_use]
    pub fn markdown() -> String {
        let mut table = "| not run on the CPU device yet | instructions |\n|---|---|\n".to_owned();
        for family in NOT_RUN {
            let instructions: Vec<String> =
                family.instructions.iter().map(|instruction| format!("`{instruction}`")).collect();
            table.push_str(&format!("| {} | {} |\n", family.family, instructions.join(", ")));
        }
        table
    }
}
