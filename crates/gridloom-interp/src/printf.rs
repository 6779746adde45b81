//! Formatting as in C's `printf`. The arguments are packed as CUDA packs them for `vprintf`: one
//! after the other at their natural alignment, with integers of at least 4 bytes and floats as
//! doubles.

/// Reads memory of the printing thread: `size` bytes (1, 4 or 8) at a generic address.
pub(crate) type Read<'a, E> = dyn FnMut(u64, u32) -> Result<u64, E> + 'a;

/// The longest string that is read from memory. A longer one is cut, because a string may lack its
/// terminator.
const LONGEST: usize = 1 << 16;
/// The widest field and the highest precision. It keeps a wrong argument from producing gigabytes
/// of blanks.
const WIDEST: usize = 1 << 12;

/// The flags, width and precision of a conversion.
#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// The size that the length modifier names, in bytes: 1 for `hh`, 2 for `h`, 8 for `l`, `ll`,
    /// `j`, `z` and `t`, else 4.
    bytes: u32,
}

/// Reads the text at `address` up to its terminating zero.
pub(crate) fn read_text<E>(address: u64, read: &mut Read<'_, E>) -> Result<Vec<u8>, E> {
    let mut text = Vec::new();
    while text.len() < LONGEST {
        match read(address.wrapping_add(text.len() as u64), 1)? {
            0 => break,
            byte => text.push(byte as u8),
        }
    }
    Ok(text)
}

/// Formats the arguments. Returns the bytes to print and the number of arguments taken.
pub(crate) fn format<E>(format: u64, arguments: u64, read: &mut Read<'_, E>) -> Result<(Vec<u8>, u32), E> {
    let format = read_text(format, read)?;
    let mut arguments = Arguments { at: arguments, taken: 0 };
    let mut out = Vec::with_capacity(format.len() + 16);
    let mut rest = &format[..];
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (spec, conversion, tail) = parse_spec(rest, &mut arguments, read)?;
        match conversion {
            Some(letter) if convert(&mut out, &spec, letter, &mut arguments, read)? => rest = tail,
            // Not a conversion: the text is printed as it is.
            _ => out.push(b'%'),
        }
    }
    Ok((out, arguments.taken))
}

struct Arguments {
    at: u64,
    taken: u32,
}

impl Arguments {
    fn next<E>(&mut self, bytes: u32, read: &mut Read<'_, E>) -> Result<u64, E> {
        // A kernel may pass any address. If it is invalid, reading it fails.
        let address = self.at.checked_next_multiple_of(u64::from(bytes)).unwrap_or(self.at);
        self.at = address.wrapping_add(u64::from(bytes));
        self.taken += 1;
        read(address, bytes)
    }
}

fn parse_spec<'f, E>(
    mut rest: &'f [u8],
    arguments: &mut Arguments,
    read: &mut Read<'_, E>,
) -> Result<(Spec, Option<u8>, &'f [u8]), E> {
    let mut spec = Spec { bytes: 4, ..Spec::default() };
    while let Some((&flag, tail)) = rest.split_first() {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        rest = tail;
    }
    let mut number = |rest: &mut &[u8]| -> Result<i64, E> {
        if let [b'*', tail @ ..] = *rest {
            *rest = tail;
            return Ok(i64::from(arguments.next(4, read)? as u32 as i32));
        }
        let mut value = 0i64;
        while let Some((digit @ b'0'..=b'9', tail)) = rest.split_first() {
            value = (value * 10 + i64::from(digit - b'0')).min(WIDEST as i64);
            *rest = tail;
        }
        Ok(value)
    };
    let width = number(&mut rest)?;
    spec.left |= width < 0;
    spec.width = (width.unsigned_abs() as usize).min(WIDEST);
    if let [b'.', tail @ ..] = rest {
        rest = tail;
        // A negative precision counts as none.
        spec.precision = usize::try_from(number(&mut rest)?).ok().map(|p| p.min(WIDEST));
    }
    loop {
        let (bytes, length) = match rest {
            [b'h', b'h', ..] => (1, 2),
            [b'h', ..] => (2, 1),
            [b'l', b'l', ..] => (8, 2),
            [b'l' | b'j' | b'z' | b't', ..] => (8, 1),
            _ => break,
        };
        spec.bytes = bytes;
        rest = &rest[length..];
    }
    let conversion = rest.first().copied();
    Ok((spec, conversion, rest.get(1..).unwrap_or_default()))
}

/// Prints one conversion. Returns `false`, having read no argument, if the letter is not a
/// conversion.
fn convert<E>(
    out: &mut Vec<u8>,
    spec: &Spec,
    letter: u8,
    arguments: &mut Arguments,
    read: &mut Read<'_, E>,
) -> Result<bool, E> {
    let wide = spec.bytes.max(4);
    match letter {
        b'%' => out.push(b'%'),
        b'd' | b'i' => {
            let bits = arguments.next(wide, read)?;
            let value = match spec.bytes {
                1 => i64::from(bits as i8),
                2 => i64::from(bits as i16),
                4 => i64::from(bits as i32),
                _ => bits as i64,
            };
            integer(out, spec, sign(spec, value < 0), "", value.unsigned_abs().to_string());
        }
        b'u' | b'o' | b'x' | b'X' => {
            let bits = arguments.next(wide, read)?;
            let value = if spec.bytes == 8 { bits } else { bits & ((1 << (8 * spec.bytes)) - 1) };
            let (digits, prefix) = match letter {
                b'u' => (value.to_string(), ""),
                b'o' => (format!("{value:o}"), "0"),
                b'x' => (format!("{value:x}"), "0x"),
                _ => (format!("{value:X}"), "0X"),
            };
            let prefix = if spec.alternate && value != 0 { prefix } else { "" };
            integer(out, spec, "", prefix, digits);
        }
        b'p' => {
            let address = arguments.next(8, read)?;
            pad(out, spec, "", &format!("{address:#x}"), false);
        }
        b'c' => {
            let byte = arguments.next(4, read)? as u8;
            pad_bytes(out, spec, "", &[byte], false);
        }
        b's' => {
            let address = arguments.next(8, read)?;
            let mut text = if address == 0 { b"(null)".to_vec() } else { read_text(address, read)? };
            text.truncate(spec.precision.unwrap_or(usize::MAX));
            pad_bytes(out, spec, "", &text, false);
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let value = f64::from_bits(arguments.next(8, read)?);
            let sign = sign(spec, value.is_sign_negative());
            let magnitude = value.abs();
            let text = match letter.to_ascii_lowercase() {
                _ if value.is_nan() => "nan".to_owned(),
                _ if value.is_infinite() => "inf".to_owned(),
                b'f' => fixed(magnitude, spec.precision.unwrap_or(6), spec.alternate),
                b'e' => exponential(magnitude, spec.precision.unwrap_or(6), spec.alternate),
                b'g' => shortest(magnitude, spec.precision.unwrap_or(6), spec.alternate),
                _ => hexadecimal(magnitude, spec.precision),
            };
            let text = if letter.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text };
            pad(out, spec, sign, &text, value.is_finite());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn integer(out: &mut Vec<u8>, spec: &Spec, sign: &str, prefix: &str, digits: String) {
    let least = spec.precision.unwrap_or(1);
    let digits = if digits == "0" && least == 0 { String::new() } else { format!("{digits:0>least$}") };
    // A precision turns the zero flag off.
    let zeros = spec.precision.is_none();
    pad(out, spec, &format!("{sign}{prefix}"), &digits, zeros);
}

fn pad(out: &mut Vec<u8>, spec: &Spec, sign: &str, text: &str, zeros: bool) {
    pad_bytes(out, spec, sign, text.as_bytes(), zeros);
}

/// Writes `sign` and `text` in a field of the requested width. If `zeros` is set, the padding is
/// zeros after the sign.
fn pad_bytes(out: &mut Vec<u8>, spec: &Spec, sign: &str, text: &[u8], zeros: bool) {
    let fill = spec.width.saturating_sub(sign.len() + text.len());
    let zeros = zeros && spec.zero && !spec.left;
    if !spec.left && !zeros {
        out.resize(out.len() + fill, b' ');
    }
    out.extend_from_slice(sign.as_bytes());
    if zeros {
        out.resize(out.len() + fill, b'0');
    }
    out.extend_from_slice(text);
    if spec.left {
        out.resize(out.len() + fill, b' ');
    }
}

fn fixed(value: f64, precision: usize, alternate: bool) -> String {
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{value:.precision$}{point}")
}

/// Formats as `%e`, for example `1.5e+03`: Rust writes `1.5e3`, C wants a sign and two digits in
/// the exponent.
fn exponential(value: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if alternate && precision == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{point}e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats as `%g`: fixed or exponential by the rule of C, without trailing zeros.
fn shortest(value: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let scientific = exponential(value, precision - 1, alternate);
    let exponent: i64 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let text = if exponent < -4 || exponent >= precision as i64 {
        scientific
    } else {
        fixed(value, (precision as i64 - 1 - exponent) as usize, alternate)
    };
    if alternate {
        return text;
    }
    let (mantissa, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    format!("{mantissa}{exponent}")
}

/// Formats as `%a`, for example `0x1.8p+1`.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    if value == 0.0 {
        let zeros = "0".repeat(precision.unwrap_or(0));
        return if zeros.is_empty() { "0x0p+0".into() } else { format!("0x0.{zeros}p+0") };
    }
    let bits = value.to_bits();
    let biased = (bits >> 52) as i32;
    let (mut lead, exponent) = if biased == 0 { (0, -1022) } else { (1u64, biased - 1023) };
    let mut fraction = bits & ((1 << 52) - 1);
    let digits = match precision {
        Some(digits) if digits < 13 => {
            let drop = 52 - 4 * digits as u32;
            let all = (lead << 52) | fraction;
            let (kept, lost, half) = (all >> drop, all & ((1 << drop) - 1), 1u64 << (drop - 1));
            let kept = kept + u64::from(lost > half || (lost == half && kept & 1 == 1));
            lead = kept >> (4 * digits);
            fraction = kept & ((1 << (4 * digits)) - 1);
            if digits == 0 { String::new() } else { format!("{fraction:0digits$x}") }
        }
        Some(digits) => format!("{:0<digits$}", format!("{fraction:013x}")),
        None => format!("{fraction:013x}").trim_end_matches('0').to_owned(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Formats with a small memory: the format at 0x1000, the packed arguments at 0x2000, a string
    /// at 0x3000.
    fn printed(text: &str, arguments: &[u8]) -> (String, u32) {
        let mut memory = vec![0u8; 0x4000];
        memory[0x1000..][..text.len()].copy_from_slice(text.as_bytes());
        memory[0x2000..][..arguments.len()].copy_from_slice(arguments);
        memory[0x3000..][..5].copy_from_slice(b"heat\0");
        let mut read = |address: u64, size: u32| -> Result<u64, Infallible> {
            let mut bytes = [0; 8];
            bytes[..size as usize].copy_from_slice(&memory[address as usize..][..size as usize]);
            Ok(u64::from_le_bytes(bytes))
        };
        let Ok((out, taken)) = format(0x1000, 0x2000, &mut read);
        (String::from_utf8(out).unwrap(), taken)
    }

    #[test]
    fn arguments_may_be_said_to_be_at_the_end_of_the_address_space() {
        let text = b"%f %d\0";
        let mut read = |address: u64, _: u32| -> Result<u64, Infallible> {
            Ok(text.get(address as usize).map_or(0, |byte| u64::from(*byte)))
        };
        let Ok((out, taken)) = format(0, u64::MAX - 2, &mut read);
        assert_eq!((out, taken), (b"0.000000 0".to_vec(), 2));
    }

    fn double(text: &str, value: f64) -> String {
        printed(text, &value.to_bits().to_le_bytes()).0
    }

    fn int(text: &str, value: i32) -> String {
        printed(text, &value.to_le_bytes()).0
    }

    #[test]
    fn integers_follow_flags_width_precision_and_length() {
        assert_eq!(int("%d|", -5), "-5|");
        assert_eq!(int("%5d|", 42), "   42|");
        assert_eq!(int("%-5d|", 42), "42   |");
        assert_eq!(int("%05d", -42), "-0042");
        assert_eq!(int("%+d", 7), "+7");
        assert_eq!(int("% d", 7), " 7");
        assert_eq!(int("%.3d", 7), "007");
        assert_eq!(int("%.0d", 0), "");
        assert_eq!(int("%u", -1), "4294967295");
        assert_eq!(int("%#x", 255), "0xff");
        assert_eq!(int("%08X", 0xbeef), "0000BEEF");
        assert_eq!(int("%#o", 8), "010");
        assert_eq!(int("%hhd", 0x1ff), "-1");
        assert_eq!(int("%hu", -1), "65535");
        assert_eq!(int("%c%%", 65), "A%");
        assert_eq!(printed("%lld", &(-3i64).to_le_bytes()).0, "-3");
    }

    #[test]
    fn floats_follow_c() {
        assert_eq!(double("%f", 1.5), "1.500000");
        assert_eq!(double("%.0f", 2.5), "2");
        assert_eq!(double("%8.2f|", -2.456), "   -2.46|");
        assert_eq!(double("%08.2f", -2.456), "-0002.46");
        assert_eq!(double("%e", 12345.678), "1.234568e+04");
        assert_eq!(double("%.2E", 1e-10), "1.00E-10");
        assert_eq!(double("%g", 100000.0), "100000");
        assert_eq!(double("%g", 1000000.0), "1e+06");
        assert_eq!(double("%g", 0.0001), "0.0001");
        assert_eq!(double("%g", 0.00001), "1e-05");
        assert_eq!(double("%#g", 1.0), "1.00000");
        assert_eq!(double("%g", 0.0), "0");
        assert_eq!(double("%a", 3.0), "0x1.8p+1");
        assert_eq!(double("%.0a", 1.5), "0x2p+0");
        assert_eq!(double("%a", 0.0), "0x0p+0");
        assert_eq!(double("%f", f64::INFINITY), "inf");
        assert_eq!(double("%05f", f64::NAN), "  nan");
        assert_eq!(double("%F", f64::NEG_INFINITY), "-INF");
    }

    #[test]
    fn arguments_are_packed_at_their_alignment() {
        let mut arguments = vec![];
        arguments.extend(1i32.to_le_bytes());
        arguments.extend([0; 4]);
        arguments.extend(2.5f64.to_bits().to_le_bytes());
        arguments.extend(0x3000u64.to_le_bytes());
        arguments.extend(4i32.to_le_bytes());
        assert_eq!(printed("%d %.1f %s %d\n", &arguments), ("1 2.5 heat 4\n".into(), 4));
    }

    #[test]
    fn strings_have_width_and_precision_and_may_be_null() {
        let pointer = 0x3000u64.to_le_bytes();
        assert_eq!(printed("%6s|%%", &pointer).0, "  heat|%");
        assert_eq!(printed("%-6.2s|", &pointer).0, "he    |");
        assert_eq!(printed("%s", &0u64.to_le_bytes()).0, "(null)");
        assert_eq!(printed("%p", &pointer).0, "0x3000");
    }

    #[test]
    fn a_star_takes_width_and_precision_from_the_arguments() {
        let mut arguments = vec![];
        arguments.extend((-6i32).to_le_bytes());
        arguments.extend(3i32.to_le_bytes());
        assert_eq!(printed("%*d|", &arguments).0, "3     |");
        let mut arguments = vec![];
        arguments.extend(2i32.to_le_bytes());
        arguments.extend([0; 4]);
        arguments.extend(1.0f64.to_bits().to_le_bytes());
        assert_eq!(printed("%.*f", &arguments).0, "1.00");
    }

    #[test]
    fn what_is_no_conversion_stands_for_itself() {
        assert_eq!(printed("100%", &[]).0, "100%");
        assert_eq!(printed("%y", &[]).0, "%y");
    }
}
