# coding: utf-8
if x:
	y  z
