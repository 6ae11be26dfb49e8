/* SPDX-License-Identifier: Apache-2.0 */
/* Included last by librad's sources: makes calls that the house style forbids
 * (STYLE, "Errors") compile errors. Include it after every system header. */
#ifndef RADI_BANNED_H
#define RADI_BANNED_H
#undef alloca                   /* a macro of <stdlib.h> */
#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof \
    alloca rand srand exit printf gets
#endif
