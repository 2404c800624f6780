mod branches;
mod examples;
mod given;
mod properties;
mod size;
