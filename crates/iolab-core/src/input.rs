// SPDX-License-Identifier: Apache-2.0
//! The bytes of a trace: from a file or standard input, after decompression of gzip, xz and zstd.

use crate::error::TraceError;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Number of bytes at the beginning by which a format is detected.
pub const HEAD: usize = 64 << 10;

/// Maximum dictionary size in KiB of a compressed file; without it, a small file could use up all memory.
const DICTIONARY_KIB: u32 = 64 << 10;

/// An open trace.
pub struct Input {
    /// The beginning, decompressed: `HEAD` bytes, or fewer if the file is shorter.
    pub head: Vec<u8>,
    /// All bytes, including the beginning.
    pub bytes: Box<dyn Read + Send>,
    /// The file and its size, if it is an uncompressed file; its blocks can be read in any order.
    pub plain: Option<(File, u64)>,
    /// The file name, without directories and compression suffix.
    pub name: String,
}

/// Open a path; "-" is standard input.
pub fn open(path: &str) -> Result<Input, TraceError> {
    if path == "-" {
        return from_reader(io::stdin(), "").map_err(|error| TraceError::io("standard input", &error));
    }
    let failed = |error| TraceError::io(path, &error);
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if meta.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let name =
        std::path::Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let again = file.try_clone().map_err(failed)?;
    let mut magic = Vec::new();
    let mut file = file;
    (&mut file).take(6).read_to_end(&mut magic).map_err(failed)?;
    let plain = (meta.is_file() && Compression::of(&magic).is_none()).then_some((again, meta.len()));
    let mut input = from_reader(Cursor::new(magic).chain(file), &name).map_err(failed)?;
    input.plain = plain;
    Ok(input)
}

/// Open any reader; `name` is the file name, if any.
pub fn from_reader(mut reader: impl Read + Send + 'static, name: &str) -> io::Result<Input> {
    let mut magic = Vec::new();
    reader.by_ref().take(6).read_to_end(&mut magic)?;
    let compression = Compression::of(&magic);
    let raw = Cursor::new(magic).chain(reader);
    let mut bytes: Box<dyn Read + Send> = match compression {
        None => Box::new(raw),
        Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(raw))),
        Some(Compression::Xz) => {
            Box::new(lzma_rust2::XzReader::new_mem_limit(BufReader::new(raw), true, DICTIONARY_KIB))
        }
        Some(Compression::Zstd) => Box::new(ZstdFrames::new(BufReader::new(raw))),
    };
    let mut head = Vec::new();
    if let Err(error) = bytes.by_ref().take(HEAD as u64).read_to_end(&mut head) {
        if compression.is_none() || !is_damage(&error) || head.is_empty() {
            return Err(error);
        }
        // the next read fails at the same position
        bytes = Box::new(Failed(Some(error)));
    }
    let name = ["gz", "xz", "zst"]
        .iter()
        .find_map(|ending| name.strip_suffix(&format!(".{ending}")))
        .unwrap_or(name)
        .to_owned();
    Ok(Input { bytes: Box::new(Cursor::new(head.clone()).chain(bytes)), head, plain: None, name })
}

/// Whether an error means damaged or truncated compressed data, not a failing disk.
pub fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other
    )
}

struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[derive(Clone, Copy)]
enum Compression {
    Gzip,
    Xz,
    Zstd,
}

impl Compression {
    fn of(magic: &[u8]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A sequence of Zstandard frames; the decoder itself reads only one.
struct ZstdFrames<R: Read> {
    source: BufReader<R>,
    frame: Option<FrameDecoder>,
}

impl<R: Read> ZstdFrames<R> {
    fn new(source: BufReader<R>) -> Self {
        Self { source, frame: None }
    }

    /// The next frame; `None` at the end of the data.
    fn next_frame(&mut self) -> io::Result<Option<FrameDecoder>> {
        while !self.source.fill_buf()?.is_empty() {
            let mut decoder = FrameDecoder::new();
            decoder.set_max_window_size(u64::from(DICTIONARY_KIB) << 10);
            match decoder.init(&mut self.source) {
                Ok(()) => return Ok(Some(decoder)),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(invalid(error)),
            }
        }
        Ok(None)
    }
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let Some(frame) = &mut self.frame else {
                self.frame = self.next_frame()?;
                if self.frame.is_none() {
                    return Ok(0);
                }
                continue;
            };
            while frame.can_collect() == 0 && !frame.is_finished() {
                frame.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1)).map_err(invalid)?;
            }
            match frame.read(buffer)? {
                0 => {
                    let stated = frame.get_checksum_from_data();
                    if stated.is_some() && stated != frame.get_calculated_checksum() {
                        return Err(invalid("the checksum differs"));
                    }
                    self.frame = None;
                }
                bytes => return Ok(bytes),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn text() -> Vec<u8> {
        (0..6_000u32)
            .flat_map(|line| format!("{line}, {}, 0, 4096, 0\n", line.wrapping_mul(2_654_435_761)).into_bytes())
            .collect()
    }

    fn read(bytes: Vec<u8>) -> (Vec<u8>, Option<io::Error>) {
        let mut input = match from_reader(Cursor::new(bytes), "x.gz") {
            Ok(input) => input,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut out = Vec::new();
        let error = input.bytes.read_to_end(&mut out).err();
        assert!(out.starts_with(&input.head) || error.is_some());
        (out, error)
    }

    #[test]
    fn every_compression_gives_the_text_and_so_do_parts_in_succession() {
        let text = text();
        for compress in [|text: &[u8]| text.to_vec(), gzip, xz, zstd] {
            let twice = [compress(&text), compress(&text)].concat();
            let (out, error) = read(twice);
            assert!(error.is_none(), "{error:?}");
            assert_eq!(out, [&text[..], &text[..]].concat());
        }
    }

    #[test]
    fn a_truncated_file_gives_its_content_and_an_error() {
        let text = text();
        for compress in [gzip, xz, zstd] {
            let compressed = compress(&text);
            for cut in [8, 20, compressed.len() / 2, compressed.len() - 1] {
                let (out, error) = read(compressed[..cut].to_vec());
                assert!(is_damage(&error.expect("cut data")));
                assert!(text.starts_with(&out));
            }
        }
    }

    #[test]
    fn a_skippable_frame_is_skipped() {
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let (out, error) = read([zstd(b"one\n"), skippable, zstd(b"two\n")].concat());
        assert!(error.is_none());
        assert_eq!(out, b"one\ntwo\n");
    }

    #[test]
    fn the_name_loses_its_compression() {
        assert_eq!(from_reader(Cursor::new(b"x".to_vec()), "a_lat.1.log.gz").unwrap().name, "a_lat.1.log");
    }
}
