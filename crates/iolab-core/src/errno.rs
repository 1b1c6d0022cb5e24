// SPDX-License-Identifier: Apache-2.0
//! Names of Linux error numbers, as in errno(3).

/// Numbers and names of errors of storage and file calls; the numbers are those of x86, arm, riscv, power and s390.
const NAMES: [(u32, &str); 84] = [
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (8, "ENOEXEC"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (15, "ENOTBLK"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (26, "ETXTBSY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (32, "EPIPE"),
    (33, "EDOM"),
    (34, "ERANGE"),
    (35, "EDEADLK"),
    (36, "ENAMETOOLONG"),
    (37, "ENOLCK"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (42, "ENOMSG"),
    (43, "EIDRM"),
    (52, "EBADE"),
    (53, "EBADR"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (63, "ENOSR"),
    (67, "ENOLINK"),
    (70, "ECOMM"),
    (71, "EPROTO"),
    (74, "EBADMSG"),
    (75, "EOVERFLOW"),
    (84, "EILSEQ"),
    (85, "ERESTART"),
    (86, "ESTRPIPE"),
    (87, "EUSERS"),
    (90, "EMSGSIZE"),
    (92, "ENOPROTOOPT"),
    (95, "EOPNOTSUPP"),
    (103, "ECONNABORTED"),
    (104, "ECONNRESET"),
    (105, "ENOBUFS"),
    (107, "ENOTCONN"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (112, "EHOSTDOWN"),
    (113, "EHOSTUNREACH"),
    (114, "EALREADY"),
    (115, "EINPROGRESS"),
    (116, "ESTALE"),
    (117, "EUCLEAN"),
    (121, "EREMOTEIO"),
    (122, "EDQUOT"),
    (123, "ENOMEDIUM"),
    (124, "EMEDIUMTYPE"),
    (125, "ECANCELED"),
    (126, "ENOKEY"),
    (128, "EKEYREVOKED"),
    (129, "EKEYREJECTED"),
    (132, "ERFKILL"),
    (512, "ERESTARTSYS"),
    (513, "ERESTARTNOINTR"),
    (514, "ERESTARTNOHAND"),
    (529, "EIOCBQUEUED"),
];

/// Name of an error number (positive); None if it is not in the table.
pub fn name(number: u32) -> Option<&'static str> {
    NAMES.binary_search_by_key(&number, |&(known, _)| known).ok().map(|at| NAMES[at].1)
}

/// Name of an error number, or the text `errno N`.
pub fn words(number: u32) -> String {
    name(number).map_or_else(|| format!("errno {number}"), str::to_owned)
}

/// Name of an error number; `EUNKNOWN` if it is not in the table.
#[must_use]
pub fn name_or_unknown(number: u64) -> &'static str {
    u32::try_from(number).ok().and_then(name).unwrap_or("EUNKNOWN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_and_other_numbers() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((words(5).as_str(), words(121).as_str(), words(4000).as_str()), ("EIO", "EREMOTEIO", "errno 4000"));
    }
}
