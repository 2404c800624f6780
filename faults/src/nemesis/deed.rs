//! The possible deeds, by name.

use std::fmt;

use clap::ValueEnum;

use crate::Options;

/// Shortest run, in seconds, with time for a long pause.
const LONG_RUN: u64 = 300;
/// Shortest run, in seconds, with time for what takes some seconds on its own.
const A_MINUTE: u64 = 60;

/// Something that hurts. Its name is the variant's, in kebab case, and lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Deed {
    /// A service or server is killed (SIGKILL) and comes back after a moment.
    Kill,
    /// Two of them are killed together.
    KillTwo,
    /// One is killed each time that it has begun to catch up.
    KillAgainAndAgain,
    /// All NATS servers and Postgres are killed at the same time.
    KillNatsAndPostgres,
    /// A service or server is held still (SIGSTOP) for up to six seconds.
    HoldStill,
    /// One is held still for 90 s, longer than leases and consumers live; in runs of 300 s and more.
    HoldLong,
    /// A service or server is asked to end, and starts again.
    Restart,
    /// A second instance of a service runs next to the first until it is killed.
    Second,
    /// The runner is started with its checkpoints of some time ago.
    OlderCheckpoint,
    /// Postgres ends all its connections, again and again.
    CutConnections,
    /// A service may open hardly any more files or connections for some seconds.
    FewFiles,
    /// All between services and NATS or Postgres takes 20 to 400 ms longer in each direction.
    Delay,
    /// Nothing passes between services and NATS or Postgres; connections stay open.
    Partition,
    /// What services send arrives, what NATS or Postgres answers does not.
    HoldAnswers,
    /// What services send does not arrive, what NATS or Postgres says does.
    HoldRequests,
    /// Connections to NATS or Postgres end in the midst of an answer, again and again.
    CutAnswers,
    /// New connections to NATS or Postgres are refused, and those there are end.
    Refuse,
    /// The leader of a stream steps down; with three NATS servers.
    StepDown,
    /// Two of three NATS servers are killed, and come back.
    TwoOfThree,
    /// A NATS server is killed and comes back without its data; with three.
    FolderLost,
    /// A NATS server is killed, and its data are put back to what they were some time ago; with
    /// three.
    OlderFolder,
    /// A NATS server is killed, and the end of a stream's newest file is cut off; with three.
    EndCutOff,
    /// Nothing passes between a NATS server and the others, or one of them; with three.
    ServersParted,
    /// What a NATS server sends to the others, or one of them, does not arrive; with three.
    ServersHalfParted,
    /// All between NATS servers takes 20 to 300 ms longer in each direction; with three.
    ServersFar,
    /// Connections between NATS servers end in the midst of what is sent; with three.
    ServersCut,
    /// Postgres is killed, and its data are put back to what they were some time ago.
    OlderDatabase,
    /// Postgres is killed and a standby that followed it is promoted; in runs of 60 s and more.
    StandbyPromoted,
    /// A service is upgraded or taken back to another version; with --other.
    OtherVersion,
    /// An operator has a read model verified; in runs of 60 s and more.
    Verify,
    /// An operator has a read model rebuilt; in runs of 60 s and more.
    Rebuild,
    /// An operator takes a backup; in runs of 60 s and more.
    Backup,
    /// An operator rotates the master key; in runs of 60 s and more.
    MasterKey,
    /// All of NATS is lost once everything is quiet, and a backup is restored; at the end of runs
    /// of 60 s and more.
    AllLost,
    /// Power fails, of a server or of all: what is not on their disks is lost; with --disks.
    PowerLoss,
    /// A disk fails under its server, which cannot write or flush any more; with --disks.
    DiskFails,
    /// A server's disk is full for some seconds; with --disks.
    DiskFull,
    /// A server's disk hangs for some seconds; with --disks.
    DiskHangs,
    /// The clocks of some services jump by up to an hour, and back; with --clocks.
    ClockJumps,
}

impl Deed {
    /// Its weight among all deeds.
    fn weight(self) -> usize {
        match self {
            Self::Kill => 46,
            Self::KillTwo | Self::PowerLoss => 14,
            Self::HoldStill => 15,
            Self::CutConnections => 12,
            Self::Delay | Self::CutAnswers => 10,
            Self::KillAgainAndAgain
            | Self::Partition
            | Self::StepDown
            | Self::ServersParted
            | Self::ClockJumps => 8,
            Self::Second | Self::OtherVersion => 7,
            Self::Restart
            | Self::ServersHalfParted
            | Self::ServersFar
            | Self::ServersCut
            | Self::FewFiles
            | Self::DiskHangs
            | Self::OlderCheckpoint
            | Self::HoldAnswers
            | Self::HoldRequests
            | Self::Refuse => 6,
            Self::KillNatsAndPostgres
            | Self::TwoOfThree
            | Self::FolderLost
            | Self::OlderFolder
            | Self::EndCutOff
            | Self::OlderDatabase
            | Self::StandbyPromoted
            | Self::Verify
            | Self::Rebuild
            | Self::Backup
            | Self::MasterKey
            | Self::DiskFails
            | Self::DiskFull => 4,
            Self::HoldLong => 1,
            // Not before the end.
            Self::AllLost => 0,
        }
    }

    /// Whether a run can do it.
    fn suits(self, options: &Options) -> bool {
        match self {
            Self::StepDown
            | Self::TwoOfThree
            | Self::FolderLost
            | Self::OlderFolder
            | Self::EndCutOff
            | Self::ServersParted
            | Self::ServersHalfParted
            | Self::ServersFar
            | Self::ServersCut => options.nats == 3,
            Self::PowerLoss | Self::DiskFails | Self::DiskFull | Self::DiskHangs => options.disks,
            Self::ClockJumps => options.clocks,
            Self::HoldLong => options.seconds >= LONG_RUN,
            Self::StandbyPromoted
            | Self::Verify
            | Self::Rebuild
            | Self::Backup
            | Self::MasterKey
            | Self::AllLost => options.seconds >= A_MINUTE,
            Self::OtherVersion => options.other.is_some(),
            _ => true,
        }
    }

    /// The given deeds, or all if none are given, without the excluded ones.
    pub fn choose(only: &[Self], without: &[Self]) -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        let is_wanted = |deed: &Self| only.is_empty() || only.contains(deed);
        let wanted = all.filter(is_wanted);
        wanted.filter(|deed| !without.contains(deed)).collect()
    }

    /// The allowed deeds that a run can do.
    pub fn possible(options: &Options) -> Vec<Self> {
        let suiting = options.deeds.iter().filter(|deed| deed.suits(options));
        suiting.copied().collect()
    }

    /// The possible deeds among which a round's is chosen, with their weights.
    pub(super) fn weighed(options: &Options) -> Vec<(usize, Self)> {
        let possible = Self::possible(options).into_iter();
        let weighed = possible.map(|deed| (deed.weight(), deed));
        weighed.filter(|(weight, _)| *weight > 0).collect()
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(seconds: u64, nats: usize, deeds: Vec<Deed>) -> Options {
        Options {
            seconds,
            nats,
            deeds,
            ..Options::default()
        }
    }

    #[test]
    fn names_last() {
        let names: Vec<_> = Deed::value_variants()
            .iter()
            .map(ToString::to_string)
            .collect();
        let expected = "kill kill-two kill-again-and-again kill-nats-and-postgres hold-still \
                        hold-long restart second older-checkpoint cut-connections few-files delay \
                        partition hold-answers hold-requests cut-answers refuse step-down \
                        two-of-three folder-lost older-folder end-cut-off servers-parted \
                        servers-half-parted servers-far servers-cut older-database \
                        standby-promoted other-version verify rebuild backup master-key \
                        all-lost power-loss disk-fails disk-full disk-hangs clock-jumps";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn some_only_and_all_without_some() {
        let only = Deed::choose(&[Deed::Delay, Deed::Kill], &[Deed::Kill]);
        assert_eq!(only, [Deed::Delay]);
        let without = Deed::choose(&[], &[Deed::Kill]);
        assert_eq!(without.len(), Deed::value_variants().len() - 1);
        assert!(!without.contains(&Deed::Kill));
    }

    #[test]
    fn a_run_does_what_it_has_servers_and_time_for() {
        let chosen = vec![Deed::Kill, Deed::HoldLong, Deed::StepDown];
        let short = Deed::possible(&options(20, 1, chosen.clone()));
        assert_eq!(short, [Deed::Kill]);
        let long = Deed::possible(&options(300, 3, chosen.clone()));
        assert_eq!(long, chosen);
    }
}
