// SPDX-License-Identifier: Apache-2.0
// The gate tries the same examples in every run; at full depth they are random.
import fc from "fast-check";

declare const process: { env: { IOLAB_TEST_DEPTH?: string } };

if (process.env.IOLAB_TEST_DEPTH !== "all") fc.configureGlobal({ seed: 447 });
