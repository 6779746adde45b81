//! The format of the PTX test files, and that every file in `tests/ptx` follows it.

use crate::support::data;
use crate::support::ptx_file;
use ptx_file::{Argument, Device, Outcome, ParseError, Wanted, parse};

const SMALLEST: &str = "// RUN: kernel=k\n// ARG: out u32 1\n// EXPECT: 0 u32 [7]\n";

fn error(text: &str) -> ParseError {
    parse(text).expect_err("this text is wrong")
}

#[test]
fn run_names_kernel_and_launch() {
    let text = "// RUN: kernel=step grid=2,3,4 block=32,2,1 shared=128 only=cpu\n\
                // ARG: out u32 1\n// EXPECT: 0 u32 [7]\n";
    let [case] = &parse(text).unwrap()[..] else { panic!("one case") };
    assert_eq!((case.kernel.as_str(), case.grid, case.block), ("step", [2, 3, 4], [32, 2, 1]));
    assert_eq!((case.shared, case.only, case.line), (128, Some(Device::Cpu), 1));
}

#[test]
fn launch_settings_have_defaults() {
    let case = &parse(SMALLEST).unwrap()[0];
    assert_eq!((case.grid, case.block, case.shared, case.only), ([1; 3], [1; 3], 0, None));
}

#[test]
fn arguments_are_buffers_or_values() {
    let text = "// RUN: kernel=k\n\
                // ARG: in s16 [-1, 0x7fff]\n\
                // ARG: out f64 2\n\
                // ARG: f32 2.5\n\
                // ARG: u8 255\n\
                // EXPECT: 1 f64 [0.0, 0.0]\n";
    let case = &parse(text).unwrap()[0];
    assert_eq!(
        case.args,
        [
            Argument::Buffer(vec![0xff, 0xff, 0xff, 0x7f]),
            Argument::Buffer(vec![0; 16]),
            Argument::Scalar(2.5_f32.to_le_bytes().to_vec()),
            Argument::Scalar(vec![255]),
        ]
    );
}

#[test]
fn lists_continue_over_comment_lines_and_notes_are_skipped() {
    let text = "// RUN: kernel=k\n\
                // ARG: out u32 3      # what it is for\n\
                // EXPECT: 0 u32 [1, 2,  # the first two\n\
                //                3]\n";
    let Outcome::Contents(contents) = &parse(text).unwrap()[0].outcome else { panic!("contents") };
    assert_eq!(contents[0].values, [1, 2, 3].map(Wanted::Bits));
}

#[test]
fn floats_are_written_as_numbers_names_or_bits() {
    let text = "// RUN: kernel=k\n// ARG: out f32 6\n\
                // EXPECT: 0 f32 [1.5, -0.0, inf, -inf, nan, 0x00000001]\n\
                // ARG: out f16 3\n// EXPECT: 1 f16 [1.5, nan, any-nan]\n\
                // ARG: out f64 1\n// EXPECT: 2 f64 [nan]\n";
    let Outcome::Contents(contents) = &parse(text).unwrap()[0].outcome else { panic!("contents") };
    let singles = [0x3fc0_0000, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fff_ffff, 1].map(Wanted::Bits);
    assert_eq!(contents[0].values, singles);
    assert_eq!(contents[1].values, [Wanted::Bits(0x3e00), Wanted::Bits(0x7fff), Wanted::AnyNan]);
    assert_eq!(contents[2].values, [Wanted::Bits(0xfff8_0000_0000_0000)]);
}

#[test]
fn a_case_can_expect_an_error_instead() {
    let text = "// RUN: kernel=k\n// EXPECT-ERROR: unknown instruction `frob` #3\n";
    assert_eq!(parse(text).unwrap()[0].outcome, Outcome::Error("unknown instruction `frob` #3".into()));
}

#[test]
fn directives_belong_to_the_run_above_them() {
    let text = format!("{SMALLEST}.version 8.0\n// an ordinary comment\n{SMALLEST}");
    let cases = parse(&text).unwrap();
    assert_eq!(cases.iter().map(|case| (case.line, case.args.len())).collect::<Vec<_>>(), [(1, 1), (6, 1)]);
}

#[test]
fn contents_are_compared_bit_by_bit() {
    let case = &parse(SMALLEST).unwrap()[0];
    let Outcome::Contents(contents) = &case.outcome else { panic!("contents") };
    assert_eq!(contents[0].check(&7_u32.to_le_bytes()), Ok(()));
    let message = contents[0].check(&8_u32.to_le_bytes()).unwrap_err();
    assert_eq!(message, "line 3: argument 0, element 0: expected 7 (0x00000007), found 8 (0x00000008)");
    assert!(contents[0].check(&[7]).is_err(), "too few bytes");
}

#[test]
fn a_bound_is_relative_and_spares_special_values() {
    let text = "// RUN: kernel=k\n// ARG: out f32 3\n// EXPECT: 0 f32 [100.0, 0.0, inf] ~1e-3\n";
    let Outcome::Contents(contents) = &parse(text).unwrap()[0].outcome else { panic!("contents") };
    let check = |values: [f32; 3]| {
        contents[0].check(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()).is_ok()
    };
    assert!(check([100.05, 0.0, f32::INFINITY]));
    assert!(!check([100.2, 0.0, f32::INFINITY]));
    assert!(!check([100.0, 1e-30, f32::INFINITY]));
    assert!(!check([100.0, -0.0, f32::INFINITY]));
    assert!(!check([100.0, 0.0, f32::MAX]));
    assert!(!check([f32::NAN, 0.0, f32::INFINITY]));
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, line, message) in [
        ("\n// ARG: u32 1\n", 2, "before any RUN"),
        ("// RUN: grid=1,1,1\n", 1, "needs kernel"),
        ("// RUN: kernel=k size=3\n", 1, "`size` is not a setting"),
        ("// RUN: kernel=k grid=1,1\n", 1, "not of the form x,y,z"),
        ("// RUN: kernel=k only=gpu\n", 1, "not a device"),
        ("// RUN: kernel=k\n// ARG: i32 1\n", 2, "`i32` is not a type"),
        ("// RUN: kernel=k\n// ARG: u8 256\n", 2, "`256` is not a value"),
        ("// RUN: kernel=k\n// ARG: s8 0x100\n", 2, "`0x100` is not a value"),
        ("// RUN: kernel=k\n// ARG: f16 0.1\n", 2, "cannot be held exactly"),
        ("// RUN: kernel=k\n// ARG: f32 any-nan\n", 2, "NaN of certain bits"),
        ("// RUN: kernel=k\n// ARG: in u32 [1,\n// EXPECT: 0 u32 [1]\n", 3, "not closed"),
        ("// RUN: kernel=k\n// EXPECT: 0 u32 [1]\n", 2, "no argument 0"),
        ("// RUN: kernel=k\n// ARG: u32 1\n// EXPECT: 0 u32 [1]\n", 3, "no kernel changes"),
        ("// RUN: kernel=k\n// ARG: out u32 2\n// EXPECT: 0 u32 [1]\n", 3, "holds 8 bytes, the list 4"),
        ("// RUN: kernel=k\n// ARG: out u32 1\n// EXPECT: 0 u32 [1] ~0.1\n", 3, "floating-point"),
        ("// RUN: kernel=k\n// ARG: out u32 1\n", 1, "expects nothing"),
    ] {
        let error = error(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn every_file_is_well_formed_and_its_kernels_exist() {
    let folder = data::folder("tests/ptx");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        files += 1;
        let (text, name) = (std::fs::read_to_string(&path).unwrap(), path.display());
        let cases = parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!cases.is_empty(), "{name} has no RUN line");
        for case in cases {
            let entry = format!(".entry {}(", case.kernel);
            assert!(text.contains(&entry), "{name}: no kernel `{}`", case.kernel);
        }
    }
    assert!(files > 0, "no file in {}", folder.display());
}
