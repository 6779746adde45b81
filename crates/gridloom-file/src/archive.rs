//! Archives: zip files whose entries are stored without compression.
//!
//! A reader of compressed entries must guard against a small file that unpacks to a huge one.
//! Stored entries have the size they take in the file, and entries may not overlap, so an archive
//! never holds more than its own size. Any zip tool can look into one, and `zip -0 -r` makes one.

use crate::error::{Error, Result, bail};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const LOCAL_BYTES: usize = 30;
const CENTRAL_BYTES: usize = 46;
const END_BYTES: usize = 22;
/// The largest comment at the end of an archive.
const MOST_COMMENT: usize = 0xffff;
/// The bit of an entry that says that it is encrypted.
const ENCRYPTED: u16 = 1;
/// 1 January 1980, so that equal contents make equal files.
const DATE: u16 = 0x21;
/// The version of the zip format that a reader needs: 1.0.
const VERSION: u16 = 10;

/// Writes an archive of these entries, in this order.
pub(crate) fn write(entries: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let Ok(count) = u16::try_from(entries.len()) else {
        bail!("{} entries; an archive holds at most {}", entries.len(), u16::MAX);
    };
    let mut out =
        Vec::with_capacity(entries.iter().map(|(name, data)| data.len() + 2 * name.len() + 96).sum());
    let mut directory = Vec::new();
    for (name, data) in entries {
        let (size, offset) = (small(data.len())?, small(out.len())?);
        let Ok(name_bytes) = u16::try_from(name.len()) else { bail!("the name of an entry is too long") };
        let mut common = Vec::with_capacity(26);
        put16(&mut common, VERSION);
        put16(&mut common, 0); // flags
        put16(&mut common, 0); // method: stored
        put16(&mut common, 0); // time
        put16(&mut common, DATE);
        put32(&mut common, crc32(data));
        put32(&mut common, size);
        put32(&mut common, size);
        put16(&mut common, name_bytes);
        put16(&mut common, 0); // extra field

        put32(&mut out, LOCAL);
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);

        put32(&mut directory, CENTRAL);
        put16(&mut directory, VERSION);
        directory.extend(&common);
        put16(&mut directory, 0); // comment
        put16(&mut directory, 0); // disk
        put16(&mut directory, 0); // internal attributes
        put32(&mut directory, 0); // external attributes
        put32(&mut directory, offset);
        directory.extend(name.as_bytes());
    }
    let (start, size) = (small(out.len())?, small(directory.len())?);
    out.extend(directory);
    put32(&mut out, END);
    put16(&mut out, 0); // this disk
    put16(&mut out, 0); // disk of the directory
    put16(&mut out, count);
    put16(&mut out, count);
    put32(&mut out, size);
    put32(&mut out, start);
    put16(&mut out, 0); // comment
    small(out.len())?;
    Ok(out)
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

fn small(size: usize) -> Result<u32> {
    match u32::try_from(size) {
        Ok(size) if size < u32::MAX => Ok(size),
        _ => Err(Error::new("the file would be larger than 4 GiB; save less as input")),
    }
}

/// An archive that is being read.
pub(crate) struct Archive<'a> {
    entries: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive and checks every entry.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let end = find_end(bytes)?;
        let count = usize::from(get16(bytes, end + 10)?);
        let (size, start) = (get32(bytes, end + 12)? as usize, get32(bytes, end + 16)? as usize);
        let Some(directory_end) = start.checked_add(size).filter(|&after| after <= end) else {
            bail!("the directory of the archive is not where its end says");
        };
        let mut entries = Vec::with_capacity(count.min(size / CENTRAL_BYTES));
        let mut spans = Vec::with_capacity(entries.capacity());
        let mut sums = Vec::with_capacity(entries.capacity());
        let mut at = start;
        for _ in 0..count {
            if get32(bytes, at)? != CENTRAL {
                bail!("the directory of the archive is damaged");
            }
            let (flags, method) = (get16(bytes, at + 8)?, get16(bytes, at + 10)?);
            let sum = get32(bytes, at + 16)?;
            let (stored, size) = (get32(bytes, at + 20)?, get32(bytes, at + 24)?);
            let name_bytes = usize::from(get16(bytes, at + 28)?);
            let skipped = usize::from(get16(bytes, at + 30)?) + usize::from(get16(bytes, at + 32)?);
            let offset = get32(bytes, at + 42)? as usize;
            let Ok(name) = std::str::from_utf8(part(bytes, at + CENTRAL_BYTES, name_bytes)?) else {
                bail!("the name of an entry of the archive is not UTF-8");
            };
            at += CENTRAL_BYTES + name_bytes + skipped;
            if at > directory_end {
                bail!("the directory of the archive is damaged");
            }
            if flags & ENCRYPTED != 0 {
                bail!("{name:?} is encrypted");
            }
            if method != 0 || stored != size {
                bail!("{name:?} is compressed; store the entries without compression (zip -0)");
            }
            if size == u32::MAX || offset == u32::MAX as usize {
                bail!("{name:?} uses the zip64 format, which is not supported");
            }
            let (data_at, data) = contents(bytes, offset, size as usize).map_err(|error| error.at(name))?;
            if data_at + data.len() > start {
                bail!("{name:?} reaches into the directory of the archive");
            }
            spans.push((offset, data_at + data.len()));
            sums.push(sum);
            entries.push((name, data));
        }
        spans.sort_unstable();
        if spans.windows(2).any(|pair| pair[1].0 < pair[0].1) {
            bail!("entries of the archive overlap");
        }
        // Computed only now: the sums of overlapping entries could take forever.
        if let Some(((name, _), _)) = entries.iter().zip(sums).find(|((_, data), sum)| crc32(data) != *sum) {
            bail!("{name:?} is damaged: its checksum is wrong");
        }
        entries.sort_unstable_by_key(|(name, _)| *name);
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            bail!("two entries of the archive have the name {:?}", pair[0].0);
        }
        Ok(Archive { entries })
    }

    /// Returns the contents of an entry.
    pub(crate) fn get(&self, name: &str) -> Result<&'a [u8]> {
        match self.entries.binary_search_by_key(&name, |(name, _)| name) {
            Ok(found) => Ok(self.entries[found].1),
            Err(_) => bail!("there is no {name:?} in the archive"),
        }
    }
}

/// Returns the position of the record at the end of an archive.
fn find_end(bytes: &[u8]) -> Result<usize> {
    let not = || Error::new("not a saved graph: the file is not a zip archive, or its end is missing");
    let last = bytes.len().checked_sub(END_BYTES).ok_or_else(not)?;
    let first = last.saturating_sub(MOST_COMMENT);
    (first..=last)
        .rev()
        .find(|&at| {
            let comment = last - at;
            bytes[at..].starts_with(&END.to_le_bytes())
                && bytes[at + 20..at + 22] == (comment as u16).to_le_bytes()
        })
        .ok_or_else(not)
}

/// Returns position and contents of the entry whose local header is at `offset`.
fn contents(bytes: &[u8], offset: usize, size: usize) -> Result<(usize, &[u8])> {
    if get32(bytes, offset)? != LOCAL {
        bail!("the entry is not where the directory says");
    }
    let skipped = usize::from(get16(bytes, offset + 26)?) + usize::from(get16(bytes, offset + 28)?);
    let at = offset + LOCAL_BYTES + skipped;
    Ok((at, part(bytes, at, size)?))
}

fn part(bytes: &[u8], at: usize, len: usize) -> Result<&[u8]> {
    at.checked_add(len)
        .and_then(|end| bytes.get(at..end))
        .ok_or_else(|| Error::new("the archive ends too early"))
}

fn get16(bytes: &[u8], at: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(part(bytes, at, 2)?.try_into().expect("two bytes")))
}

fn get32(bytes: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(part(bytes, at, 4)?.try_into().expect("four bytes")))
}

/// For each byte, eight tables: the checksum of the byte followed by 0 to 7 zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte as u32, 0);
        while bit < 8 {
            value = if value & 1 != 0 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Returns the CRC-32 that zip and PNG files use, computed eight bytes at a time.
pub fn crc32(data: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(sum);
        sum = (0..8).fold(0, |sum, byte| sum ^ TABLES[7 - byte][(word >> (8 * byte) & 0xff) as usize]);
    }
    for byte in rest {
        sum = sum >> 8 ^ TABLES[0][((sum ^ u32::from(*byte)) & 0xff) as usize];
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<(String, Vec<u8>)> {
        vec![
            ("b".into(), b"second".to_vec()),
            ("a/one.txt".into(), b"first".to_vec()),
            ("empty".into(), Vec::new()),
        ]
    }

    #[test]
    fn the_checksum_is_that_of_zip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(&[0; 32]), 0x190a_55ad);
    }

    #[test]
    fn what_is_written_is_read_and_equal_contents_make_equal_files() {
        let bytes = write(&sample()).unwrap();
        let archive = Archive::open(&bytes).unwrap();
        for (name, data) in sample() {
            assert_eq!(archive.get(&name).unwrap(), data);
        }
        assert!(archive.get("other").unwrap_err().to_string().contains("other"));
        assert_eq!(bytes, write(&sample()).unwrap());
    }

    #[test]
    fn a_comment_at_the_end_is_allowed() {
        let mut bytes = write(&sample()).unwrap();
        let comment = bytes.len() - 2;
        bytes[comment..].copy_from_slice(&3u16.to_le_bytes());
        bytes.extend(b"abc");
        assert!(Archive::open(&bytes).is_ok());
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_refused_or_harmless() {
        let bytes = write(&sample()).unwrap();
        for end in 0..bytes.len() {
            assert!(Archive::open(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                // Times, versions and attributes do not matter; contents always do.
                if let Ok(archive) = Archive::open(&changed) {
                    for (name, data) in sample() {
                        assert!(
                            archive.get(&name).is_err() || archive.get(&name).unwrap() == data,
                            "byte {at}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn entries_that_share_bytes_are_refused() {
        let bytes = write(&[("a".into(), b"x".to_vec()), ("b".into(), b"x".to_vec())]).unwrap();
        // The directory entry of b names the place of a.
        let directory = bytes.windows(4).position(|four| four == CENTRAL.to_le_bytes()).unwrap();
        let second = directory + CENTRAL_BYTES + 1;
        let mut twice = bytes.clone();
        twice[second + 42..second + 46].copy_from_slice(&0u32.to_le_bytes());
        assert!(Archive::open(&twice).err().unwrap().to_string().contains("overlap"));
        let mut same = bytes;
        same[second + CENTRAL_BYTES] = b'a';
        assert!(Archive::open(&same).err().unwrap().to_string().contains("\"a\""));
    }

    #[test]
    fn many_entries_over_the_same_bytes_are_refused_before_their_sums_are_computed() {
        let (size, count) = (64 << 20, u16::MAX);
        let mut bytes = write(&[("a".into(), vec![7; size])]).unwrap();
        let directory = bytes.len() - END_BYTES - CENTRAL_BYTES - 1;
        let entry = bytes[directory..directory + CENTRAL_BYTES + 1].to_vec();
        bytes.truncate(directory);
        (0..count).for_each(|_| bytes.extend(&entry));
        put32(&mut bytes, END);
        put32(&mut bytes, 0);
        put16(&mut bytes, count);
        put16(&mut bytes, count);
        put32(&mut bytes, u32::from(count) * entry.len() as u32);
        put32(&mut bytes, directory as u32);
        put16(&mut bytes, 0);
        // Four tebibytes would be read for the sums.
        assert!(Archive::open(&bytes).err().unwrap().to_string().contains("overlap"));
    }

    #[test]
    fn sizes_and_places_beyond_the_file_are_refused() {
        let bytes = write(&[("a".into(), b"x".to_vec())]).unwrap();
        let directory = bytes.windows(4).position(|four| four == CENTRAL.to_le_bytes()).unwrap();
        let (size, place, end) = ([20, 24], [42, 42], bytes.len() - END_BYTES);
        for (offsets, value, said) in [
            (size, u32::MAX, "zip64"),
            (size, u32::MAX - 1, "too early"),
            (place, u32::MAX, "zip64"),
            (place, 1 << 31, "too early"),
        ] {
            let mut changed = bytes.clone();
            for offset in offsets {
                changed[directory + offset..directory + offset + 4].copy_from_slice(&value.to_le_bytes());
            }
            let error = Archive::open(&changed).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
        for offset in [10, 12, 16] {
            let mut changed = bytes.clone();
            changed[end + offset..end + offset + 2].copy_from_slice(&[0xff; 2]);
            assert!(Archive::open(&changed).is_err(), "the end of the archive, byte {offset}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_names_like_any_other() {
        // Nothing is unpacked to a file system, so such an entry is never asked for.
        let bytes = write(&[("../../etc/passwd".into(), b"x".to_vec()), ("/a".into(), vec![])]).unwrap();
        assert_eq!(Archive::open(&bytes).unwrap().get("../../etc/passwd").unwrap(), b"x");
        assert!(Archive::open(&bytes).unwrap().get("a").is_err());
    }

    #[test]
    fn compressed_and_encrypted_entries_are_refused_by_name() {
        let bytes = write(&[("a".into(), b"x".to_vec())]).unwrap();
        let directory = bytes.windows(4).position(|four| four == CENTRAL.to_le_bytes()).unwrap();
        for (offset, said) in [(8, "encrypted"), (10, "zip -0")] {
            let mut changed = bytes.clone();
            changed[directory + offset] = if offset == 8 { 1 } else { 8 };
            let error = Archive::open(&changed).err().unwrap().to_string();
            assert!(error.contains(said) && error.contains("\"a\""), "{error}");
        }
    }
}
