//! Limits on the size and duration of one upload.
//!
//! A request counts once against its key's limit, whatever its size. So that the limit also means
//! something for endless lines, a long request counts again every so many lines; and each request
//! has an end, with or without a limit.

use std::sync::Arc;

use access::{Access, Caller, Refusal};
use clap::Args;
use schemas::OrgId;
use service::settings::defaults;
use service::{Full, Share, Shares};

/// How much one upload may contain.
#[derive(Clone, Debug, Args)]
pub struct UploadSettings {
    /// Most lines of one request, not counting a CSV's header row. A line of the answer says where
    /// it ended.
    #[arg(
        id = "upload_lines",
        long,
        env = "WAYPOST_UPLOAD_LINES",
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub lines: u64,
    /// Most bytes of the lines of one request, unpacked. A line of the answer says where it ended.
    #[arg(
        id = "upload_bytes",
        long,
        env = "WAYPOST_UPLOAD_BYTES",
        default_value_t = 1024 * 1024 * 1024
    )]
    pub bytes: u64,
    /// Number of lines after which a request counts once more against its key's limit.
    #[arg(
        id = "upload_lines_counted",
        long,
        env = "WAYPOST_UPLOAD_LINES_COUNTED",
        default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub lines_counted: u64,
    /// Uploads of one process at a time that are too long to be answered as a whole. Further ones
    /// wait. An organization gets half of them at most while nobody else wants any.
    #[arg(id = "uploads", long, env = "WAYPOST_UPLOADS", default_value_t = 32)]
    pub uploads: usize,
}

impl Default for UploadSettings {
    fn default() -> Self {
        defaults()
    }
}

/// The uploads of a process.
pub(crate) struct Uploads {
    settings: UploadSettings,
    places: Shares<OrgId>,
}

impl Uploads {
    pub(crate) fn new(settings: UploadSettings) -> Self {
        let places = Shares::new(settings.uploads);
        Self { settings, places }
    }

    /// Waits for a place for a long upload.
    pub(super) async fn enter(&self, org: &OrgId) -> Share<OrgId> {
        self.places.enter(org.clone()).await
    }

    /// The allowance of a request whose key has been counted once.
    pub(super) fn allowance(&self, access: Access, caller: Arc<Caller>) -> Allowance {
        Allowance {
            paid: self.settings.lines_counted,
            header: 0,
            settings: self.settings.clone(),
            access,
            caller,
        }
    }
}

/// What one upload may still write.
pub(super) struct Allowance {
    settings: UploadSettings,
    access: Access,
    caller: Arc<Caller>,
    /// Lines that are counted against the key's limit.
    paid: u64,
    /// Lines before the first record, which do not count.
    header: u64,
}

/// Why an upload ends before its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    #[error("the API key is no longer valid; this line and the lines after it were not written")]
    KeyEnded,
    #[error("{0}; then send this line and the lines after it again")]
    LimitReached(Refusal),
    #[error(
        "a request takes at most {0} lines; send this line and the lines after it in another \
         request"
    )]
    TooManyLines(u64),
    #[error(
        "a request takes at most {0} bytes; send this line and the lines after it in another \
         request"
    )]
    TooManyBytes(u64),
    #[error("{Full}; in a few seconds send this line and the lines after it again")]
    NoRoom,
}

impl Allowance {
    /// Leaves out `header` lines, which only describe the others.
    pub(super) fn leave_out(&mut self, header: u64) {
        self.header = header;
        self.paid = self.paid.saturating_add(header);
    }

    /// Returns up to which line it may write, if lines up to `last` have arrived in `bytes`; and
    /// why not all of them.
    pub(super) async fn admit(&mut self, last: u64, bytes: u64) -> (u64, Option<Stop>) {
        if !self.access.is_in_force(&self.caller) {
            return (0, Some(Stop::KeyEnded));
        }
        if let Some(stop) = self.too_many_bytes(bytes) {
            return (0, Some(stop));
        }
        let wanted = last.min(self.settings.lines.saturating_add(self.header));
        while wanted > self.paid {
            if let Err(refusal) = self.access.count_again(&self.caller).await {
                return (self.paid, Some(Stop::LimitReached(refusal)));
            }
            self.paid = self.paid.saturating_add(self.settings.lines_counted);
        }
        let too_many = Stop::TooManyLines(self.settings.lines);
        (wanted, (last > wanted).then_some(too_many))
    }

    /// Whether `bytes` are more than one request may send.
    pub(super) fn too_many_bytes(&self, bytes: u64) -> Option<Stop> {
        let most = self.settings.bytes;
        (bytes > most).then_some(Stop::TooManyBytes(most))
    }

    /// Waits for the end of the key.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.access.ended(&self.caller)
    }
}

impl Stop {
    /// Counts that an upload was ended.
    pub(super) fn note(self) {
        let reason = match self {
            Self::KeyEnded => "key_ended",
            Self::LimitReached(_) => "limit",
            Self::TooManyLines(_) => "lines",
            Self::TooManyBytes(_) => "bytes",
            Self::NoRoom => "memory",
        };
        metrics::counter!("waypost_uploads_ended_total", "reason" => reason).increment(1);
    }
}
