//! A server's world and what clients see of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod behaviour;
mod budget;
mod desk;
mod lateness;
mod limits;
mod live;
mod scenarios;
mod simulation;
