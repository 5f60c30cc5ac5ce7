//! `blocks`: what is loaded on servers comes back; what cannot be is said in a sentence.
