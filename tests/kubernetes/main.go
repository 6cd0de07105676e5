// SPDX-License-Identifier: Apache-2.0

// Package main is a Kubernetes control plane in one program. Its first argument names the component to run.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("name a component: etcd, kube-apiserver, kube-controller-manager or kube-scheduler"))
	}
	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllers.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	switch {
	case commands[component] != nil:
		os.Exit(cli.Run(commands[component]()))
	case component == "etcd":
		etcdmain.Main(os.Args)
	default:
		fail(fmt.Errorf("there is no component %q", component))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
