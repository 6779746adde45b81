//! Pictures made of numbers: in the terminal, as SVG and as PNG.

use std::fmt::Write;

use crate::colour::{colour, shade};
use crate::terminal::Terminal;

/// The narrowest picture that a file shows, in pixels. Smaller ones are enlarged.
const FILE_PIXELS: usize = 512;

/// Rows of values between 0 and 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Image {
    pub(crate) width: usize,
    pub(crate) values: Vec<f32>,
}

impl Image {
    /// Creates a picture of rows of this width.
    pub(crate) fn new(width: usize, values: Vec<f32>) -> Self {
        Image { width: width.max(1), values }
    }

    pub(crate) fn height(&self) -> usize {
        self.values.len() / self.width
    }

    /// Adds the rows of another picture of the same width below.
    pub(crate) fn append(&mut self, other: &Image) {
        self.width = other.width;
        self.values.extend(&other.values);
    }

    /// Returns a smaller picture in which each value is the mean of its share. A picture that fits
    /// stays as it is.
    fn shrunk(&self, width: usize, height: usize) -> Image {
        let (columns, rows) = (self.width.min(width.max(1)), self.height().min(height.max(1)));
        let part =
            |index: usize, parts: usize, whole: usize| index * whole / parts..(index + 1) * whole / parts;
        let mut values = Vec::with_capacity(columns * rows);
        for row in 0..rows {
            for column in 0..columns {
                let (mut sum, mut count) = (0.0, 0);
                for y in part(row, rows, self.height()) {
                    for x in part(column, columns, self.width) {
                        sum += self.values[y * self.width + x];
                        count += 1;
                    }
                }
                values.push(sum / count.max(1) as f32);
            }
        }
        Image::new(columns, values)
    }

    /// Returns the picture as lines for a terminal, at most `height` rows of values and as wide as
    /// the terminal leaves beside a label. With colours a line shows two rows, one above the other.
    pub(crate) fn lines(&self, terminal: Terminal, label: usize, height: usize) -> Vec<String> {
        let room = terminal.columns.saturating_sub(label);
        if self.height() == 1 {
            return vec![self.strip(terminal, room)];
        }
        let small = self.shrunk(room, height);
        let row = |y: usize| small.values.get(y * small.width..(y + 1) * small.width);
        let mut lines = Vec::new();
        for y in (0..small.height()).step_by(2) {
            let Some(upper) = row(y) else { break };
            let lower = row(y + 1);
            let mut line = String::new();
            for (x, &above) in upper.iter().enumerate() {
                let below = lower.map_or(0.0, |lower| lower[x]);
                if terminal.colour {
                    let ([r, g, b], [s, h, c]) = (colour(above), colour(below));
                    let _ = write!(line, "\x1b[38;2;{r};{g};{b}m\x1b[48;2;{s};{h};{c}m▀");
                } else {
                    line.push(shade((above + below) / 2.0));
                }
            }
            line.push_str(if terminal.colour { "\x1b[0m" } else { "" });
            lines.push(line);
        }
        lines
    }

    /// Returns one row as a line.
    fn strip(&self, terminal: Terminal, room: usize) -> String {
        /// The most cells of a line.
        const CELLS: usize = 48;
        let room = if terminal.colour { room / 2 } else { room };
        let small = self.shrunk(room.min(CELLS), 1);
        let mut line = String::new();
        for &value in &small.values {
            if terminal.colour {
                let [red, green, blue] = colour(value);
                let _ = write!(line, "\x1b[48;2;{red};{green};{blue}m  ");
            } else {
                line.push(shade(value));
            }
        }
        line.push_str(if terminal.colour { "\x1b[0m" } else { "" });
        line
    }

    /// Returns the size of a value in a file, in pixels.
    fn pixel(&self) -> usize {
        FILE_PIXELS.div_ceil(self.width).max(1)
    }

    /// Returns the picture as SVG: a rectangle for each run of one colour.
    pub(crate) fn to_svg(&self) -> String {
        let (width, height, pixel) = (self.width, self.height(), self.pixel());
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" shape-rendering=\"crispEdges\">\n",
            width * pixel,
            height * pixel
        );
        for (y, row) in self.values.chunks_exact(width).enumerate() {
            let mut start = 0;
            while start < width {
                let fill = colour(row[start]);
                let length = row[start..].iter().take_while(|&&value| colour(value) == fill).count();
                let [red, green, blue] = fill;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{start}\" y=\"{y}\" width=\"{length}\" height=\"1\" fill=\"#{red:02x}{green:02x}{blue:02x}\"/>"
                );
                start += length;
            }
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns the picture as PNG, without compression.
    pub(crate) fn to_png(&self) -> Vec<u8> {
        let pixel = self.pixel();
        let (width, height) = (self.width * pixel, self.height() * pixel);
        // Each row starts with the number of its filter, none.
        let mut rows = Vec::with_capacity(height * (1 + 3 * width));
        for row in self.values.chunks_exact(self.width) {
            let mut line = vec![0];
            for &value in row {
                line.extend(std::iter::repeat_n(colour(value), pixel).flatten());
            }
            for _ in 0..pixel {
                rows.extend(&line);
            }
        }
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = Vec::new();
        header.extend((width as u32).to_be_bytes());
        header.extend((height as u32).to_be_bytes());
        // Eight bits, red, green and blue, the only methods there are, not interlaced.
        header.extend([8, 2, 0, 0, 0]);
        chunk(&mut png, b"IHDR", &header);
        chunk(&mut png, b"IDAT", &stored(&rows));
        chunk(&mut png, b"IEND", &[]);
        png
    }
}

/// Appends a part of a PNG file.
fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let start = png.len();
    png.extend(kind);
    png.extend(data);
    let sum = gridloom_file::crc32(&png[start..]);
    png.extend(sum.to_be_bytes());
}

/// Returns data in the zlib format, in stored blocks.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        out.extend((block.len() as u16).to_le_bytes());
        out.extend((!(block.len() as u16)).to_le_bytes());
        out.extend(block);
    }
    let (mut low, mut high) = (1u32, 0u32);
    for &byte in data {
        low = (low + u32::from(byte)) % 65521;
        high = (high + low) % 65521;
    }
    out.extend((high << 16 | low).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(columns: usize, colour: bool) -> Terminal {
        Terminal { columns, rows: 24, colour, rewrites: true }
    }

    #[test]
    fn more_values_than_columns_are_averaged() {
        let row = Image::new(4, vec![0.0, 0.0, 1.0, 1.0]);
        assert_eq!(row.lines(terminal(2, false), 0, 9), [" @"]);
        let square = Image::new(4, vec![1.0; 16]);
        assert_eq!(square.lines(terminal(2, false), 0, 2), ["@@"]);
    }

    #[test]
    fn a_picture_fits_a_narrow_terminal() {
        let row = Image::new(100, vec![0.0; 100]);
        assert_eq!(row.lines(terminal(20, false), 9, 9)[0].len(), 11);
        assert_eq!(row.lines(terminal(200, false), 9, 9)[0].len(), 48);
        assert_eq!(row.lines(terminal(20, true), 9, 9)[0].matches("48;2").count(), 5);
        assert_eq!(row.lines(terminal(3, true), 9, 9)[0].matches("48;2").count(), 1);
        let square = Image::new(100, vec![0.0; 100 * 100]);
        let lines = square.lines(terminal(20, false), 0, 10);
        assert_eq!((lines.len(), lines[0].len()), (5, 20));
    }

    #[test]
    fn files_have_every_pixel() {
        let image = Image::new(2, vec![0.0, 1.0, 1.0, 1.0]);
        let svg = image.to_svg();
        assert_eq!(svg.matches("<rect").count(), 3, "{svg}");
        assert!(svg.contains("viewBox=\"0 0 2 2\"") && svg.contains("#fcffbe"));
        let png = image.to_png();
        assert!(png.starts_with(b"\x89PNG") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        assert_eq!(png[16..24], [0, 0, 2, 0, 0, 0, 2, 0], "512 by 512");
        assert!(png.len() > 512 * 512 * 3);
    }

    #[test]
    fn the_checksum_of_zlib_is_adler() {
        assert_eq!(stored(b"Wikipedia")[2 + 5 + 9..], [0x11, 0xe6, 0x03, 0x98]);
    }
}
