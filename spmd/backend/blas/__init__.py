"""Batched rows: every region becomes a function over the rows that wait at it.

A product of a shared matrix with one vector per row is one matrix product over the rows; elementwise stretches are one
generated kernel each; gradients of shared arguments are collected and reduced once per site.
"""
