//! Waypost's own verification of its read models.

use harness::System;
use serde_json::Value;

use super::Findings;

const VERIFIED: &str = "projections that `waypost projection verify` finds equal";

/// Has every projection verified, row by row.
pub(crate) async fn verify(system: &System, findings: &mut Findings) {
    let known = system.waypost_output(&["projection", "--help"], b"").await;
    if !String::from_utf8_lossy(&known.stdout).contains("verify") {
        return;
    }
    let listed = system.waypost(&["projection", "list"]).await;
    for projection in listed["projections"].as_array().into_iter().flatten() {
        let name = projection["name"].as_str().unwrap_or_default();
        let output = system
            .waypost_output(&["projection", "verify", name], b"")
            .await;
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let differences = &told["differences"];
        let none = differences
            .as_array()
            .map_or(differences == 0, Vec::is_empty);
        let right = output.status.success() && none;
        let found = format!("{told} {}", String::from_utf8_lossy(&output.stderr));
        findings.judge(VERIFIED, right, name, "no differences", found);
    }
}
