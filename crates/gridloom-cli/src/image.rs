//! Pictures made of numbers: in the terminal, as SVG and as PNG.

use std::fmt::Write;

use crate::colour::{colour, shade};
use crate::terminal::Terminal;

/// The narrowest picture that a file shows, in pixels. Smaller ones are enlarged.
const FILE_PIXELS: usize = 512;
/// The most values beside each other that a file shows. Larger pictures are reduced.
const FILE_MOST: usize = 4096;

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
        let image = self.shrunk(FILE_MOST, FILE_MOST);
        let (width, height, pixel) = (image.width, image.height(), image.pixel());
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" shape-rendering=\"crispEdges\">\n",
            width * pixel,
            height * pixel
        );
        for (y, row) in image.values.chunks_exact(width).enumerate() {
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

    /// Returns the picture as PNG.
    pub(crate) fn to_png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let image = self.shrunk(FILE_MOST, FILE_MOST);
        let pixel = image.pixel();
        let (width, height) = (image.width * pixel, image.height() * pixel);
        let mut rows = Vec::with_capacity(3 * width * height);
        for row in image.values.chunks_exact(image.width) {
            let line: Vec<u8> =
                row.iter().flat_map(|&value| std::iter::repeat_n(colour(value), pixel)).flatten().collect();
            (0..pixel).for_each(|_| rows.extend(&line));
        }
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&rows)?;
        writer.finish()?;
        Ok(file)
    }
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
        let png = image.to_png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; 512 * 512 * 3];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (512, 512));
        let at = |x: usize, y: usize| &pixels[3 * (512 * y + x)..][..3];
        assert_eq!(
            [at(0, 0), at(255, 255), at(256, 0), at(0, 256)],
            [colour(0.0), colour(0.0), colour(1.0), colour(1.0)]
        );
    }

    #[test]
    fn huge_pictures_are_reduced_for_files() {
        let wide = Image::new(3 * FILE_MOST, vec![0.5; 3 * FILE_MOST]);
        assert!(wide.to_svg().contains("viewBox=\"0 0 4096 1\""));
        let png = wide.to_png().unwrap();
        assert_eq!(png[16..20], (FILE_MOST as u32).to_be_bytes());
    }
}
