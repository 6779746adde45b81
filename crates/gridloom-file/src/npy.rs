//! Arrays in the npy format of NumPy.
//!
//! One array per file: a short header with type and shape, then the elements in C order. Arrays
//! here are little-endian. Elements that are no plain numbers are opaque bytes (`|V12`).

use std::fmt;

use crate::error::{Error, Result, bail};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The largest number of dimensions, as in NumPy.
const MOST_DIMENSIONS: usize = 64;

/// The type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DType {
    /// The kind of element: `f` float, `i` signed and `u` unsigned integer, `c` complex, `b`
    /// boolean, `V` opaque bytes.
    pub code: char,
    /// The size of an element in bytes.
    pub size: u32,
}

impl DType {
    /// Creates a type. Fails if NumPy has none of this kind and size.
    pub fn new(code: char, size: u32) -> Result<Self> {
        let exists = match code {
            'f' => matches!(size, 2 | 4 | 8),
            'i' | 'u' => matches!(size, 1 | 2 | 4 | 8),
            'c' => matches!(size, 8 | 16),
            'b' => size == 1,
            'V' => size > 0,
            _ => false,
        };
        match exists {
            true => Ok(DType { code, size }),
            false => bail!("the element type `{code}{size}` is not supported"),
        }
    }

    /// Reads a type as NumPy writes it, such as `<f4`, `|u1` or `|V12`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::new(format!("the element type {text:?} is not supported"));
        let mut chars = text.chars();
        let order = chars.next().ok_or_else(wrong)?;
        let code = chars.next().ok_or_else(wrong)?;
        let digits = chars.as_str();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let dtype = DType::new(code, digits.parse().map_err(|_| wrong())?)?;
        match order {
            '<' | '|' => Ok(dtype),
            '>' if dtype.size == 1 => Ok(dtype),
            '>' => bail!("the array is big-endian ({text}); convert it with astype"),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.size == 1 || self.code == 'V' { '|' } else { '<' };
        write!(f, "{order}{}{}", self.code, self.size)
    }
}

/// An array: elements of one type in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The type of the elements.
    pub dtype: DType,
    /// The extent of each dimension. None for a single element.
    pub shape: Vec<u64>,
    /// The bytes of the elements.
    pub data: Vec<u8>,
}

impl Array {
    /// Creates an array. Fails if the bytes are not those of this many elements.
    pub fn new(dtype: DType, shape: Vec<u64>, data: Vec<u8>) -> Result<Self> {
        let needed = bytes_of(dtype, &shape)?;
        if needed != data.len() as u64 {
            bail!("an array of shape {} has {needed} bytes, not {}", Shape(&shape), data.len());
        }
        Ok(Array { dtype, shape, data })
    }

    /// Returns the array as an npy file.
    pub fn to_npy(&self) -> Vec<u8> {
        let shape = Shape(&self.shape);
        let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", self.dtype);
        // Magic, version, length and header end at a multiple of 64, with a line feed.
        let before = MAGIC.len() + 4;
        let padded = (before + header.len() + 1).next_multiple_of(64);
        header.extend(std::iter::repeat_n(' ', padded - before - header.len() - 1));
        header.push('\n');
        let mut out = Vec::with_capacity(padded + self.data.len());
        out.extend(MAGIC);
        out.extend([1, 0]);
        // At most 64 dimensions of 20 digits, so the length fits.
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(&self.data);
        out
    }

    /// Reads an npy file.
    pub fn from_npy(bytes: &[u8]) -> Result<Self> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { bail!("not an npy file") };
        let (version, rest) = rest.split_at_checked(2).ok_or_else(short)?;
        let (length, rest) = match version {
            [1, _] => {
                let (length, rest) = rest.split_at_checked(2).ok_or_else(short)?;
                (usize::from(u16::from_le_bytes([length[0], length[1]])), rest)
            }
            [2 | 3, _] => {
                let (length, rest) = rest.split_at_checked(4).ok_or_else(short)?;
                (u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize, rest)
            }
            [major, _] => bail!("version {major} of the npy format is not supported"),
            _ => return Err(short()),
        };
        let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
        let header = std::str::from_utf8(header).map_err(|_| Error::new("the npy header is not text"))?;
        let Header { dtype, fortran_order, shape } = Header::parse(header)?;
        if fortran_order && shape.iter().filter(|&&extent| extent != 1).count() > 1 {
            bail!("the array is in Fortran order; save it with numpy.ascontiguousarray");
        }
        Array::new(dtype, shape, data.to_vec())
    }

    /// Returns the number of elements.
    pub fn len(&self) -> u64 {
        self.data.len() as u64 / u64::from(self.dtype.size)
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

fn short() -> Error {
    Error::new("the npy file ends too early")
}

/// Returns the size of an array in bytes. Fails if it does not fit in 63 bits.
pub(crate) fn bytes_of(dtype: DType, shape: &[u64]) -> Result<u64> {
    if shape.len() > MOST_DIMENSIONS {
        bail!("an array of {} dimensions; there can be at most {MOST_DIMENSIONS}", shape.len());
    }
    shape
        .iter()
        .try_fold(u64::from(dtype.size), |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| bytes <= i64::MAX as u64)
        .ok_or_else(|| Error::new(format!("an array of shape {} is too large", Shape(shape))))
}

/// A shape as Python writes it.
pub(crate) struct Shape<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => write!(f, "({one},)"),
            extents => {
                let extents: Vec<String> = extents.iter().map(u64::to_string).collect();
                write!(f, "({})", extents.join(", "))
            }
        }
    }
}

/// The dictionary at the start of an npy file.
struct Header {
    dtype: DType,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Reads a Python dictionary of a string, a boolean and a tuple of integers.
    fn parse(text: &str) -> Result<Self> {
        let mut scanner = Scanner { rest: text.trim() };
        let (mut dtype, mut fortran_order, mut shape) = (None, None, None);
        scanner.expect("{")?;
        while !scanner.take("}") {
            let key = scanner.string()?;
            scanner.expect(":")?;
            match key {
                "descr" if dtype.is_none() => dtype = Some(DType::parse(scanner.string()?)?),
                "fortran_order" if fortran_order.is_none() => fortran_order = Some(scanner.boolean()?),
                "shape" if shape.is_none() => shape = Some(scanner.tuple()?),
                key => bail!("the npy header has an unexpected key {key:?}"),
            }
            if !scanner.take(",") {
                scanner.expect("}")?;
                break;
            }
        }
        match (dtype, fortran_order, shape) {
            (Some(dtype), Some(fortran_order), Some(shape)) => Ok(Header { dtype, fortran_order, shape }),
            _ => bail!("the npy header lacks descr, fortran_order or shape"),
        }
    }
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        match self.take(token) {
            true => Ok(()),
            false => bail!("the npy header has no `{token}` where one is expected"),
        }
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.take("'") {
            '\''
        } else {
            self.expect("\"")?;
            '"'
        };
        let Some((text, rest)) = self.rest.split_once(quote) else {
            bail!("the npy header has a string without an end");
        };
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool> {
        match (self.take("True"), self.take("False")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => bail!("the npy header has a fortran_order that is neither True nor False"),
        }
    }

    fn tuple(&mut self) -> Result<Vec<u64>> {
        let mut extents = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let Ok(extent) = digits.parse() else {
                bail!("the npy header has a shape that is no tuple of numbers")
            };
            self.rest = rest;
            extents.push(extent);
            if extents.len() > MOST_DIMENSIONS {
                bail!("the npy header has more than {MOST_DIMENSIONS} dimensions");
            }
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(code: char, size: u32, shape: &[u64]) -> Array {
        let bytes = shape.iter().product::<u64>() * u64::from(size);
        let data = (0..bytes).map(|byte| byte as u8).collect();
        Array::new(DType::new(code, size).unwrap(), shape.to_vec(), data).unwrap()
    }

    #[test]
    fn arrays_of_every_type_and_shape_read_back() {
        for (code, size) in [('f', 2), ('f', 4), ('f', 8), ('i', 1), ('u', 8), ('c', 16), ('b', 1), ('V', 12)]
        {
            for shape in [&[][..], &[1], &[5], &[2, 3], &[0, 4], &[1, 2, 3, 1]] {
                let array = array(code, size, shape);
                assert_eq!(Array::from_npy(&array.to_npy()).unwrap(), array);
            }
        }
    }

    #[test]
    fn the_bytes_are_those_that_numpy_writes() {
        // numpy.save of numpy.array([1, 2], numpy.float32).
        let npy = array('f', 4, &[2]).to_npy();
        assert_eq!(&npy[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(
            std::str::from_utf8(&npy[10..128]).unwrap().trim_end(),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
        );
        assert_eq!((npy.len(), npy[127]), (128 + 8, b'\n'));
    }

    #[test]
    fn headers_in_other_spellings_are_read() {
        let header = "{\"shape\":(3 , 2),'fortran_order' :False, \"descr\":\"<i2\"}";
        let mut npy = MAGIC.to_vec();
        npy.extend([2, 0]);
        npy.extend((header.len() as u32).to_le_bytes());
        npy.extend(header.as_bytes());
        npy.extend([7; 12]);
        let array = Array::from_npy(&npy).unwrap();
        assert_eq!((array.shape, array.dtype.to_string()), (vec![3, 2], "<i2".to_owned()));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_reason() {
        let npy = |header: &str, data: usize| {
            let mut npy = MAGIC.to_vec();
            npy.extend([1, 0]);
            npy.extend((header.len() as u16).to_le_bytes());
            npy.extend(header.as_bytes());
            npy.extend(std::iter::repeat_n(0, data));
            npy
        };
        let cases = [
            ("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, "big-endian"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16, "Fortran"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", 15, "not 15"),
            ("{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", 3, "`f3`"),
            ("{'descr': '<é', 'fortran_order': False, 'shape': (1,)}", 3, "not supported"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "expected"),
            ("{'fortran_order': False, 'shape': (1,)}", 4, "lacks"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0, "too large"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", 0, "numbers"),
            ("", 0, "expected"),
        ];
        for (header, data, said) in cases {
            let error = Array::from_npy(&npy(header, data)).unwrap_err().to_string();
            assert!(error.contains(said), "{header}: {error}");
        }
        let whole = array('f', 4, &[2, 3]).to_npy();
        for end in 0..whole.len() {
            assert!(Array::from_npy(&whole[..end]).is_err(), "cut at {end}");
        }
    }
}
