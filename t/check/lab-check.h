/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of lab-check share. */
#ifndef T_LAB_CHECK_H
#define T_LAB_CHECK_H

#include "lab/lab.h"
#include "tap.h"

extern struct rad_lab *lab;              /* the data files of the source tree */
extern struct lab_text file[64];         /* their texts */
extern int n_files;

/* The point of a base config of the type ("gguf:llama" for a GGUF) with edits
 * "path=json;path=json". */
rad_status point(const char *type, const char *edits, struct rad_lab_point **p,
                 struct rad_err *err);

void lowering_declare(void);
void lowering_step(void);
void lowering_refuses(void);
void lowering_forms(void);

#endif
