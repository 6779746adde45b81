//! The cases of `programs.cu`.

use crate::cases::{Case, Numbers, Value, words};

/// Text in UTF-8, of which most is ASCII, and where each part of about 48 bytes starts.
fn text(numbers: &mut Numbers, parts: u32) -> (Vec<u8>, Vec<u8>) {
    let (mut text, mut starts) = (String::new(), vec![0]);
    for _ in 0..parts {
        let end = text.len() + 48;
        while text.len() < end {
            let code = match numbers.next() % 16 {
                0..10 => 0x20 + numbers.next() % 0x5f,
                10..14 => 0xa0 + numbers.next() % 0x600,
                14 => 0x1000 + numbers.next() % 0x8000,
                _ => 0x1_0000 + numbers.next() % 0x1000,
            };
            text.extend(char::from_u32(code));
        }
        starts.push(text.len() as u32);
    }
    (text.into_bytes(), words(starts))
}

/// A table with open addressing that is half full, and keys of which half are in it.
fn table(numbers: &mut Numbers, slots: u32, count: u32) -> (Vec<u8>, Vec<u8>) {
    let mut table = vec![0; 2 * slots as usize];
    let mut inside = Vec::new();
    for _ in 0..slots / 2 {
        let key = numbers.next();
        let mut slot = ((key + 1).wrapping_mul(2_654_435_769) >> 8 & (slots - 1)) as usize;
        while table[2 * slot] != 0 {
            slot = (slot + 1) & (slots as usize - 1);
        }
        table[2 * slot] = key + 1;
        table[2 * slot + 1] = numbers.next();
        inside.push(key);
    }
    let keys = (0..count).map(|_| match numbers.next() % 2 {
        0 => inside[numbers.next() as usize % inside.len()],
        _ => numbers.next(),
    });
    let keys = words(keys.collect::<Vec<u32>>());
    (words(table), keys)
}

pub(crate) fn cases(numbers: &mut Numbers, quick: bool) -> Vec<Case> {
    use Value::{Bytes, Floats, Number, Real};
    let scale = if quick { 1u32 } else { 16 };
    let stream = 65_536 * scale;
    let picture = if quick { 128 } else { 2048 };
    let pixels = (picture * picture) as usize;
    let blocks = |n: u32| [n.div_ceil(256), 1, 1];
    const ROW: [u32; 3] = [256, 1, 1];
    let zeros = |count: u32| Floats(vec![0.0; count as usize]);
    let empty = |count: u32| Bytes(vec![0; count as usize * 4]);
    let floats = |numbers: &mut Numbers, count: u32| Floats(numbers.floats(count as usize));
    let words_of = |numbers: &mut Numbers, count: u32| Bytes(numbers.words(count as usize));
    let mut cases = Vec::new();
    let mut add = |name, family, grid, block, args, tolerance| {
        cases.push(Case { name, family, grid, block, args, tolerance });
    };

    let rows = stream / 16;
    let lengths: Vec<u32> = (0..rows).map(|_| 4 + numbers.next() % 13).collect();
    let columns = (0..16).flat_map(|k| lengths.iter().map(move |&length| k < length)).collect::<Vec<bool>>();
    let columns = words(columns.into_iter().map(|is| if is { numbers.next() % rows } else { u32::MAX }));
    let (values, x) = (floats(numbers, 16 * rows), floats(numbers, rows));
    let args = vec![zeros(rows), Bytes(columns), values, x, Number(16), Number(rows)];
    add("ell_product", "sparse products", blocks(rows), ROW, args, 1e-5);
    let mut starts = vec![0];
    (0..rows).for_each(|v| starts.push(starts[v as usize] + numbers.next() % 24));
    let edges = words((0..starts[rows as usize]).map(|_| numbers.next() % rows));
    let levels = words((0..rows).map(|_| [0, 1, 1, u32::MAX][numbers.next() as usize % 4]));
    let args = vec![empty(rows), Bytes(levels), Bytes(words(starts)), Bytes(edges), Number(1), Number(rows)];
    add("frontier", "steps in graphs", blocks(rows), ROW, args, 0.0);
    for name in ["sobel", "dilate", "median9"] {
        let args =
            vec![Bytes(vec![0; pixels]), Bytes(numbers.bytes(pixels)), Number(picture), Number(picture)];
        add(name, "byte images with a border", [picture / 32, picture / 8, 1], [32, 8, 1], args, 0.0);
    }
    let matrices = stream / 8;
    let args = vec![zeros(9 * matrices), floats(numbers, 9 * matrices), Number(matrices)];
    add("inverse3", "small matrices in registers", blocks(matrices), ROW, args, 1e-3);
    let points = stream / 4;
    let args =
        vec![zeros(4 * points), floats(numbers, 4 * points), floats(numbers, 4 * points), Number(points)];
    add("turn_points", "small vectors", blocks(points), ROW, args, 1e-4);
    let args = vec![zeros(stream), floats(numbers, stream), floats(numbers, stream), Number(stream)];
    add("product4", "small matrices", blocks(stream), ROW, args, 1e-5);
    let (nx, ny, nz) = if quick { (64, 32, 8) } else { (256, 128, 32) };
    let all = nx * ny * nz;
    let args = vec![zeros(all), floats(numbers, all), Number(nx), Number(ny), Number(nz)];
    add("diffuse7", "three-dimensional stencils", [nx / 32, ny / 8, nz], [32, 8, 1], args, 1e-5);
    let side = picture / 2;
    let args = vec![zeros(side * side), floats(numbers, side * side), Number(side), Number(side)];
    add("transpose_padded", "transposition", [side / 32, side / 32, 1], [32, 8, 1], args, 0.0);
    let parts = stream / 16;
    let (bytes, starts) = text(numbers, parts);
    let args = vec![empty(parts), Bytes(bytes), Bytes(starts), Number(parts)];
    add("characters", "decoding of text", blocks(parts), ROW, args, 0.0);
    let slots = 1 << if quick { 14 } else { 18 };
    // Keys without two that meet, so that both sides fill the same slots.
    let mut taken = vec![false; slots as usize];
    let mut apart = Vec::new();
    while apart.len() < slots as usize / 4 {
        let key = numbers.next();
        let slot = ((key + 1).wrapping_mul(2_654_435_769) >> 8 & (slots - 1)) as usize;
        if !std::mem::replace(&mut taken[slot], true) {
            apart.push(key);
        }
    }
    let count = stream / 4;
    let keys = words((0..count).map(|_| apart[numbers.next() as usize % apart.len()]));
    let args = vec![empty(slots), Bytes(keys), Number(slots - 1), Number(count)];
    add("insert_keys", "hash tables", blocks(count), ROW, args, 0.0);
    let (entries, keys) = table(numbers, slots, count);
    let args = vec![empty(count), Bytes(entries), Bytes(keys), Number(slots - 1), Number(count)];
    add("find_keys", "hash tables", blocks(count), ROW, args, 0.0);
    let mut starts = vec![0];
    (0..rows).for_each(|v| starts.push(starts[v as usize] + numbers.next() % 64));
    let args = vec![zeros(rows), floats(numbers, starts[rows as usize]), Bytes(words(starts)), Number(rows)];
    add("segment_sums", "sums of segments", blocks(rows), ROW, args, 1e-4);
    let mut sorted: Vec<u32> = (0..65_536).map(|_| numbers.next()).collect();
    sorted.sort_unstable();
    let keys = words_of(numbers, count);
    let args = vec![empty(count), Bytes(words(sorted)), keys, Number(65_536), Number(count)];
    add("lower_bound", "binary search", blocks(count), ROW, args, 0.0);
    let args = vec![empty(stream / 2), words_of(numbers, stream), Number(4)];
    add("digit_counts", "counts by votes", blocks(stream), ROW, args, 0.0);
    let args = vec![empty(stream), empty(stream / 32), words_of(numbers, stream)];
    add("compact", "compaction by votes", blocks(stream), ROW, args, 0.0);
    let pairs = stream / 16;
    let letters =
        |numbers: &mut Numbers| Bytes((0..16 * pairs).map(|_| (numbers.next() % 4) as u8).collect());
    let (a, b) = (letters(numbers), letters(numbers));
    let args = vec![Bytes(vec![0; pairs as usize]), a, b, Number(pairs)];
    add("edit_distance", "dynamic programming", blocks(pairs), ROW, args, 0.0);
    let cumulative = (1..=256u32).map(|k| (k * k) as f32 / 65_536.0).collect();
    let args = vec![empty(count), Floats(cumulative), Number(12_345), Number(count)];
    add("draw", "sampling by tables", blocks(count), ROW, args, 0.0);
    let rows = stream / 32;
    let args = vec![zeros(64 * rows), floats(numbers, 64 * rows), Number(rows)];
    add("softmax_rows", "softmax", blocks(rows), ROW, args, 1e-4);
    let args = vec![zeros(2 * stream), floats(numbers, 2 * stream), floats(numbers, 128)];
    add("layer_norm", "normalisation by shuffles", [2 * stream / 1024, 1, 1], ROW, args, 1e-4);
    let bytes = 4 * stream;
    let args = vec![
        Bytes(vec![0; bytes as usize]),
        Bytes(numbers.bytes(bytes as usize)),
        Bytes(numbers.bytes(256)),
        Number(bytes),
    ];
    add("tone_curve", "byte images by tables", blocks(bytes), ROW, args, 0.0);
    let args = vec![
        zeros(picture * picture),
        Bytes(numbers.bytes(pixels)),
        Number(picture),
        Number(picture),
        Real(0.955),
        Real(0.2955),
    ];
    add("turn_picture", "resampling", [picture / 32, picture / 8, 1], [32, 8, 1], args, 1e-2);
    cases
}
