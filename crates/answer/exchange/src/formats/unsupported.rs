//! Recognises formats of other programs that are not supported, and says what they are and what to do instead.

/// A format that is not supported.
struct UnsupportedFormat {
    /// Byte strings that the first bytes must contain, all of them.
    marks: &'static [&'static [u8]],
    /// Whether the first bytes must begin with the first mark; then the others are not examined.
    begins: bool,
    /// What the format is, and what can be used instead.
    hint: &'static str,
}

/// The formats, in the order in which they are tried.
const KNOWN: &[UnsupportedFormat] = &[
    UnsupportedFormat {
        marks: &[&[0x1f, 0x8b]],
        begins: true,
        hint: "this is compressed with gzip; use `gunzip --stdout FILE | stackline import -`",
    },
    UnsupportedFormat {
        marks: &[&[0x28, 0xb5, 0x2f, 0xfd]],
        begins: true,
        hint: "this is compressed with zstd; use `zstd --decompress --stdout FILE | stackline import -`",
    },
    UnsupportedFormat {
        marks: &[b"PK\x03\x04"],
        begins: true,
        hint: "this is a zip archive; unpack it first",
    },
    UnsupportedFormat {
        marks: &[b"PAR1"],
        begins: true,
        hint: "this is Parquet; `stackline query` reads the Parquet files of runs",
    },
    UnsupportedFormat {
        marks: &[b"snoop\0"],
        begins: true,
        hint: "this is a snoop capture; convert it to pcapng with `editcap`",
    },
    UnsupportedFormat {
        marks: &[b"PERFILE2"],
        begins: true,
        hint: "perf recordings are not supported",
    },
    UnsupportedFormat {
        marks: &[b"\"traceEvents\""],
        begins: false,
        hint: "Chrome's trace format is not supported; OTLP, Jaeger's JSON and qlog are",
    },
    UnsupportedFormat {
        marks: &[b"\"traceId\"", b"\"localEndpoint\""],
        begins: false,
        hint: "Zipkin's JSON is not supported; OTLP and Jaeger's JSON are",
    },
    UnsupportedFormat {
        marks: &[b"\"traceID\""],
        begins: false,
        hint: "this is not JSON as downloaded from Jaeger's UI, `{\"data\": [{\"traceID\": ..., \"spans\": [...]}]}`",
    },
    UnsupportedFormat {
        marks: &[b"NL.EVNT="],
        begins: false,
        hint: "lines in NetLogger's ULM format begin with DATE; `--as ulm` accepts any field order",
    },
    UnsupportedFormat {
        marks: &[b"ts=", b"event="],
        begins: false,
        hint: "lines in NetLogger's BP format begin with ts; `--as bp` accepts any field order",
    },
    UnsupportedFormat {
        marks: &[b"{"],
        begins: true,
        hint: "this JSON format is not supported; OTLP, Jaeger's JSON and qlog are",
    },
    UnsupportedFormat {
        marks: &[b"<"],
        begins: true,
        hint: "XML and HTML are not supported",
    },
];

/// What to do with a log of an unsupported format, recognised by its first bytes.
#[must_use]
pub fn find_unsupported(first: &[u8]) -> Option<&'static str> {
    let text = first.trim_ascii_start();
    let has = |mark: &[u8]| first.windows(mark.len()).any(|some| some == mark);
    let is = |form: &&UnsupportedFormat| match form.begins {
        true => text.starts_with(form.marks[0]),
        false => form.marks.iter().all(|mark| has(mark)),
    };
    KNOWN.iter().find(is).map(|form| form.hint)
}
